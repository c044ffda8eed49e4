#include "activate.h"

#include <cmath>
#include <numbers>

#include "polyhead/kernels/simd.h"

namespace polyhead::ops {
namespace {

namespace simd = kernels::simd;
using simd::Vec;

/// Φ(x) and φ(x) = exp(−x²/2)/√(2π).
template <class T>
struct Normal {
  Vec<T> distribution, density;
};

/// Φ by Abramowitz & Stegun 1964, 7.1.26, within 7.5e-8: the exponential it needs is the density's too.
POLYHEAD_INLINE Normal<float> normal(const Vec<float>& x) {
  const Vec<float> size = x < 0.0F ? -x : x;
  const Vec<float> e = simd::exp(-0.5F * x * x);
  const Vec<float> t = 1.0F / (1.0F + 0.3275911F * std::numbers::sqrt2_v<float> / 2.0F * size);
  Vec<float> p = 1.061405429F * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const Vec<float> tail = 0.5F * (p * t) * e;
  return {x < 0.0F ? tail : 1.0F - tail, e * 0.398942280F};
}
/// In double to the last digits: gradients are checked against it.
POLYHEAD_INLINE Normal<double> normal(const Vec<double>& x) {
  Vec<double> distribution{};
  for (std::int64_t i = 0; i < simd::lanes<double>; ++i)
    distribution[i] = 0.5 * std::erfc(-x[i] / std::numbers::sqrt2);
  return {distribution, simd::exp(-0.5 * x * x) * 0.39894228040143267794};
}

template <class T>
POLYHEAD_INLINE Vec<T> sigmoid(const Vec<T>& x) {
  return T{1} / (T{1} + simd::exp(-x));
}

struct Gelu {
  template <class T>
  POLYHEAD_INLINE Vec<T> value(const Vec<T>& x) const {
    return x * normal(x).distribution;
  }
  template <class T>
  POLYHEAD_INLINE Vec<T> derivative(const Vec<T>& x) const {
    const Normal<T> n = normal(x);
    return n.distribution + x * n.density;
  }
};

struct Swish {
  template <class T>
  POLYHEAD_INLINE Vec<T> value(const Vec<T>& x) const {
    return x * sigmoid<T>(x);
  }
  template <class T>
  POLYHEAD_INLINE Vec<T> derivative(const Vec<T>& x) const {
    const Vec<T> s = sigmoid<T>(x);
    return s + x * s * (T{1} - s);
  }
};

/// NaN is neither below nor above 0 and passes.
struct Relu {
  template <class T>
  POLYHEAD_INLINE Vec<T> value(const Vec<T>& x) const {
    return x < T{0} ? Vec<T>{} : x;
  }
  /// Of y rather than x: both have the same sign where it matters.
  template <class T>
  POLYHEAD_INLINE Vec<T> derivative(const Vec<T>& y) const {
    return y <= T{0} ? Vec<T>{} : simd::broadcast(T{1});
  }
};

template <class T, class F>
void map(const F& f, const T* z, T* y, std::int64_t n) {
  constexpr std::int64_t step = simd::lanes<T>;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) simd::store<T>(y + i, f.template value<T>(simd::load(z + i)));
  if (i < n) simd::store_first<T>(y + i, n - i, f.template value<T>(simd::load_first(z + i, n - i, T{0})));
}

template <class T, class F>
void map_gradient(const F& f, const T* z, const T* dy, T* g, std::int64_t n) {
  constexpr std::int64_t step = simd::lanes<T>;
  std::int64_t i = 0;
  for (; i + step <= n; i += step)
    simd::store<T>(g + i, simd::load(dy + i) * f.template derivative<T>(simd::load(z + i)));
  if (i < n)
    simd::store_first<T>(g + i, n - i,
                         simd::load_first(dy + i, n - i, T{0}) *
                             f.template derivative<T>(simd::load_first(z + i, n - i, T{0})));
}

}  // namespace

template <class T>
void activate(Activation activation, const T* z, T* y, std::int64_t n) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return map(Relu{}, z, y, n);
    case Activation::gelu:
      return map(Gelu{}, z, y, n);
    case Activation::swish:
      return map(Swish{}, z, y, n);
  }
}

template <class T>
void activation_gradient(Activation activation, const T* z_or_y, const T* dy, T* g, std::int64_t n) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return map_gradient(Relu{}, z_or_y, dy, g, n);
    case Activation::gelu:
      return map_gradient(Gelu{}, z_or_y, dy, g, n);
    case Activation::swish:
      return map_gradient(Swish{}, z_or_y, dy, g, n);
  }
}

template void activate(Activation, const float*, float*, std::int64_t);
template void activate(Activation, const double*, double*, std::int64_t);
template void activation_gradient(Activation, const float*, const float*, float*, std::int64_t);
template void activation_gradient(Activation, const double*, const double*, double*, std::int64_t);

}  // namespace polyhead::ops
