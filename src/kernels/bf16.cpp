#include "polyhead/kernels/bf16.h"

#include <bit>

#include "onednn.h"

namespace polyhead::kernels {
namespace {

std::uint16_t round(std::uint32_t bits) {
  // Half of the last place, less one unless the last place is odd: a tie carries only out of an odd one.
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quiet =
      (bits >> 16) | 0x40;  // a NaN with no bit left in its upper half would become infinite
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
}

}  // namespace

bool has_bf16() {
#ifdef POLYHEAD_ONEDNN
  return onednn::has_bf16();
#else
  return false;
#endif
}

void to_bf16(std::span<const float> x, std::span<BFloat16> y) {
  const float* from = x.data();
  BFloat16* to = y.data();
  const std::size_t n = x.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) to[i].bits = round(std::bit_cast<std::uint32_t>(from[i]));
}

float to_float(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

}  // namespace polyhead::kernels
