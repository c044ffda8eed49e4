#include "polyhead/kernels/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "polyhead/core/error.h"
#include "polyhead/kernels/simd.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace polyhead::kernels {
namespace {

// Eight counters side by side, a 32-bit word of each in the low half of a lane; the high halves hold
// anything.
typedef std::uint64_t Words __attribute__((vector_size(64)));
constexpr std::size_t lanes = 8;
constexpr std::size_t features_a_block = 8;

/// low half · factor, 64 bits wide.
POLYHEAD_INLINE Words product(const Words& x, std::uint64_t factor) {
#ifdef __AVX512F__
  return reinterpret_cast<Words>(
      _mm512_mul_epu32(reinterpret_cast<__m512i>(x), _mm512_set1_epi64(static_cast<std::int64_t>(factor))));
#else
  return (x & 0xFFFFFFFF) * factor;
#endif
}

/// The 64 features of the Philox4x32-10 blocks {first + l, position, sentence, extra}, l = 0 … 7.
POLYHEAD_INLINE void random_features(std::uint64_t key, std::uint32_t first, std::uint32_t position,
                                     std::uint32_t sentence, std::uint32_t extra, std::uint16_t* out) {
  Words c0 = Words{0, 1, 2, 3, 4, 5, 6, 7} + first, c1 = Words{} + position, c2 = Words{} + sentence,
        c3 = Words{} + extra;
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Words p0 = product(c0, 0xD2511F53), p1 = product(c2, 0xCD9E8D57);
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const Words front = (c0 & 0xFFFFFFFF) | (c1 << 32), back = (c2 & 0xFFFFFFFF) | (c3 << 32);
  const Words blocks[2] = {__builtin_shufflevector(front, back, 0, 8, 1, 9, 2, 10, 3, 11),
                           __builtin_shufflevector(front, back, 4, 12, 5, 13, 6, 14, 7, 15)};
  std::memcpy(out, blocks, sizeof blocks);
}

}  // namespace

void random_bits(RngKey key, std::uint32_t sentence, std::uint32_t position, std::uint32_t extra,
                 std::span<std::uint16_t> out) {
  constexpr std::size_t step = lanes * features_a_block;
  const auto block_of = [](std::size_t i) { return static_cast<std::uint32_t>(i / features_a_block); };
  std::size_t i = 0;
  for (; i + step <= out.size(); i += step)
    random_features(key.value, block_of(i), position, sentence, extra, out.data() + i);
  if (i == out.size()) return;
  std::uint16_t rest[step];
  random_features(key.value, block_of(i), position, sentence, extra, rest);
  std::copy_n(rest, out.size() - i, out.data() + i);
}

DropoutRate::DropoutRate(double p) : threshold(0), scale(1) {
  require(p >= 0 && p < 1, "a dropout probability of ", p, ", expected at least 0 and below 1");
  threshold = static_cast<std::uint32_t>(std::min(std::lround(p * 65536), 65535L));
  scale = 65536.0 / (65536.0 - threshold);
}

}  // namespace polyhead::kernels
