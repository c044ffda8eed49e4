#include "polyhead/kernels/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "polyhead/core/error.h"

namespace polyhead::kernels {
namespace {

constexpr std::size_t lanes = 16;         // blocks computed side by side
constexpr std::size_t words_a_block = 8;  // of sixteen bits

/// Philox4x32-10 of the counters {first + l, position, sentence, extra}, l = 0 … 15; out[4 l + i] is word i
/// of block l.
void philox_lanes(std::uint64_t key, std::uint32_t first, std::uint32_t position, std::uint32_t sentence,
                  std::uint32_t extra, std::uint32_t* out) {
  alignas(64) std::uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    c0[l] = first + static_cast<std::uint32_t>(l);
    c1[l] = position;
    c2[l] = sentence;
    c3[l] = extra;
  }
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[l];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c1[l] = static_cast<std::uint32_t>(p1);
      c2[l] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c3[l] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (std::size_t l = 0; l < lanes; ++l) {
    out[4 * l] = c0[l];
    out[4 * l + 1] = c1[l];
    out[4 * l + 2] = c2[l];
    out[4 * l + 3] = c3[l];
  }
}

}  // namespace

void random_bits(RngKey key, std::uint32_t sentence, std::uint32_t position, std::uint32_t extra,
                 std::span<std::uint16_t> out) {
  constexpr std::size_t step = lanes * words_a_block;
  alignas(64) std::uint32_t words[lanes * 4];
  for (std::size_t i = 0; i < out.size(); i += step) {
    philox_lanes(key.value, static_cast<std::uint32_t>(i / words_a_block), position, sentence, extra, words);
    const std::size_t count = std::min(step, out.size() - i);
    std::memcpy(out.data() + i, words, count * sizeof(std::uint16_t));
  }
}

DropoutRate::DropoutRate(double p) : threshold(0), scale(1) {
  require(p >= 0 && p < 1, "a dropout probability of ", p, ", expected at least 0 and below 1");
  threshold = static_cast<std::uint32_t>(std::min(std::lround(p * 65536), 65535L));
  scale = 65536.0 / (65536.0 - threshold);
}

}  // namespace polyhead::kernels
