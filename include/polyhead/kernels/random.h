#pragma once

#include <cstdint>
#include <span>

#include "polyhead/core/rng.h"

namespace polyhead::kernels {

/// Sixteen random bits for each feature of one row: word i is a function of (key, sentence, position, extra,
/// i) alone (Philox counter {i/8, position, sentence, extra}, eight words a block). extra < 2^32 − 1.
void random_bits(RngKey key, std::uint32_t sentence, std::uint32_t position, std::uint32_t extra,
                 std::span<std::uint16_t> out);

/// Dropout with probability p as a comparison: a feature is kept when its sixteen bits are >= threshold, and
/// scaled by 1/(1 − threshold/65536), which is exact for the probability actually used (p rounded to
/// 1/65536).
struct DropoutRate {
  explicit DropoutRate(double p);  ///< Error unless 0 <= p < 1
  std::uint32_t threshold;
  double scale;
};

}  // namespace polyhead::kernels
