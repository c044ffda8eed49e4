#include "polyhead/kernels/vector_math.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "polyhead/kernels/simd.h"

namespace polyhead::kernels {
namespace {

template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

/// Σ exp(x_i − shift) over n elements, each also stored when `y` is given. Missing lanes count as exp(−∞) =
/// 0.
template <bool keep, class T>
T exp_sum_of(const T* x, T shift, T* y, std::int64_t n) {
  constexpr std::int64_t step = simd::lanes<T>;
  simd::Vec<T> even{}, odd{};
  const auto one = [&](std::int64_t i) __attribute__((always_inline)) {
    const simd::Vec<T> e = simd::exp(simd::load(x + i) - shift);
    if constexpr (keep) simd::store(y + i, e);
    return e;
  };
  std::int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    even += one(i);
    odd += one(i + step);
  }
  if (i + step <= n) {
    even += one(i);
    std::swap(even, odd);  // the next vector of the row is an odd one
    i += step;
  }
  if (i < n) {
    const simd::Vec<T> e = simd::exp(simd::load_first(x + i, n - i, lowest<T>) - shift);
    if constexpr (keep) simd::store_first(y + i, n - i, e);
    even += e;
  }
  return simd::sum<T>(even + odd);
}

/// What to subtract before exp: the maximum, but 0 for a row without a finite element, where −∞ − (−∞) is
/// NaN.
template <class T>
T shift_of(std::span<const T> x) {
  const T largest = max(x);
  return largest == lowest<T> ? T{0} : largest;
}

}  // namespace

template <class T>
void exp(std::span<const T> x, std::span<T> y) {
  constexpr std::int64_t step = simd::lanes<T>;
  const auto n = static_cast<std::int64_t>(x.size());
  std::int64_t i = 0;
  for (; i + step <= n; i += step) simd::store(y.data() + i, simd::exp(simd::load(x.data() + i)));
  if (i < n) simd::store_first(y.data() + i, n - i, simd::exp(simd::load_first(x.data() + i, n - i, T{0})));
}

template <class T>
T max(std::span<const T> x) {
  constexpr std::int64_t step = simd::lanes<T>;
  const auto n = static_cast<std::int64_t>(x.size());
  simd::Vec<T> even = simd::broadcast(lowest<T>), odd = even;
  std::int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    even = simd::max<T>(simd::load(x.data() + i), even);
    odd = simd::max<T>(simd::load(x.data() + i + step), odd);
  }
  for (; i + step <= n; i += step) even = simd::max<T>(simd::load(x.data() + i), even);
  if (i < n) odd = simd::max<T>(simd::load_first(x.data() + i, n - i, lowest<T>), odd);
  return simd::max<T>(simd::max<T>(even, odd));
}

template <class T>
T exp_sum(std::span<const T> x, T shift, std::span<T> y) {
  return exp_sum_of<true>(x.data(), shift, y.data(), static_cast<std::int64_t>(x.size()));
}

template <class T>
T exp_sum(std::span<const T> x, T shift) {
  return exp_sum_of<false, T>(x.data(), shift, nullptr, static_cast<std::int64_t>(x.size()));
}

template <class T>
T log_sum_exp(std::span<const T> x) {
  const T shift = shift_of(x);
  return shift + std::log(exp_sum(x, shift));
}

template <class T>
T softmax_row(std::span<T> x) {
  const T shift = shift_of(std::span<const T>(x));
  const T sum = exp_sum(std::span<const T>(x), shift, x);
  const T scale = sum == 0 ? T{0} : 1 / sum;
  for (T& value : x) value *= scale;
  return shift + std::log(sum);
}

#define POLYHEAD_INSTANTIATE(T)                                  \
  template void exp(std::span<const T>, std::span<T>);           \
  template T max(std::span<const T>);                            \
  template T exp_sum(std::span<const T>, T shift, std::span<T>); \
  template T exp_sum(std::span<const T>, T shift);               \
  template T log_sum_exp(std::span<const T>);                    \
  template T softmax_row(std::span<T>);
POLYHEAD_INSTANTIATE(float)
POLYHEAD_INSTANTIATE(double)
#undef POLYHEAD_INSTANTIATE

}  // namespace polyhead::kernels
