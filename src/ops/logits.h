#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "polyhead/kernels/simd.h"

/// Logits of a row that exist a tile of words at a time.
namespace polyhead::ops {

template <class T>
struct RowStatistics {
  T max, sum;
};

/// z <- z + bias, and its statistics, in one pass; bias may be null.
template <class T>
RowStatistics<T> add_bias(T* z, const T* bias, std::int64_t n) {
  namespace simd = kernels::simd;
  constexpr std::int64_t step = simd::lanes<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  simd::Vec<T> max[2] = {simd::broadcast(lowest), simd::broadcast(lowest)}, sum[2] = {};
  const auto count = [&](int side, std::int64_t j) __attribute__((always_inline)) {
    simd::Vec<T> x = simd::load(z + j);
    if (bias) simd::store(z + j, x += simd::load(bias + j));
    max[side] = simd::max<T>(x, max[side]);
    sum[side] += x;
  };
  std::int64_t j = 0;
  for (; j + 2 * step <= n; j += 2 * step) {
    count(0, j);
    count(1, j + step);
  }
  if (j + step <= n) {
    count(0, j);
    j += step;
  }
  if (j < n) {
    simd::Vec<T> x = simd::load_first(z + j, n - j, lowest);
    if (bias) simd::store_first(z + j, n - j, x += simd::load_first(bias + j, n - j, T{0}));
    max[1] = simd::max<T>(x, max[1]);
    sum[1] += simd::select_first<T>(n - j, x, simd::Vec<T>{});
  }
  return {simd::max<T>(simd::max<T>(max[0], max[1])), simd::sum<T>(sum[0] + sum[1])};
}

/// The sum of a softmax over the tiles seen so far, shifted by their largest logit (Milakov and Gimelshein 2018,
/// arXiv:1805.02867).
template <class T>
struct RunningSum {
  T max = -std::numeric_limits<T>::infinity();
  T sum = 0;  ///< Σ exp(z − max)

  /// Prepares for a tile whose largest logit this is; whether none before was as large.
  bool raise(T largest) {
    if (!(largest > max)) return false;
    sum *= std::exp(max - largest);
    max = largest;
    return true;
  }
};

}  // namespace polyhead::ops
