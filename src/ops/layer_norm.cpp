#include "polyhead/ops/layer_norm.h"

#include <cmath>
#include <limits>

#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

template <class T>
void normalise(const T* x, const T* gamma, const T* beta, T* y, std::int64_t d, T eps, T& mean, T& rstd) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < d; ++i) sum += x[i];
  mean = sum / static_cast<T>(d);
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < d; ++i) squares += (x[i] - mean) * (x[i] - mean);
  rstd = T{1} / std::sqrt(squares / static_cast<T>(d) + eps);
  // Of a variance that overflows; the row would come out as beta alone.
  if (rstd == 0) rstd = std::numeric_limits<T>::quiet_NaN();
#pragma omp simd
  for (std::int64_t i = 0; i < d; ++i) y[i] = gamma[i] * ((x[i] - mean) * rstd) + beta[i];
}

/// ∂x of one row; g is ∂y.
template <class T>
void add_input_gradient(const T* x, const T* gamma, const T* g, T* dx, std::int64_t d, T mean, T rstd) {
  T sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (std::int64_t i = 0; i < d; ++i) {
    sum += gamma[i] * g[i];
    dot += gamma[i] * g[i] * ((x[i] - mean) * rstd);
  }
  sum /= static_cast<T>(d);
  dot /= static_cast<T>(d);
#pragma omp simd
  for (std::int64_t i = 0; i < d; ++i) dx[i] += (gamma[i] * g[i] - sum - (x[i] - mean) * rstd * dot) * rstd;
}

}  // namespace

Shape LayerNorm::shape(const Tensor& x, const Tensor& gamma, const Tensor& beta) const {
  require(x.shape.rank() >= 1 && x.cols() > 0, "layer_norm: x ", x.shape, ", expected at least one feature");
  require(gamma.shape == Shape{x.cols()} && beta.shape == Shape{x.cols()}, "layer_norm: gamma ", gamma.shape,
          " and beta ", beta.shape, " for x ", x.shape, ", expected [", x.cols(), "]");
  return x.shape;
}

LayerNorm::Saved LayerNorm::forward(Exec& exec, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    const Tensor& y) const {
  const std::int64_t n = x.rows(), d = x.cols();
  const Saved saved{exec.activations.tensor({n}, x.dtype), exec.activations.tensor({n}, x.dtype)};
  dispatch(x.dtype, [&]<class T>() {
    for (std::int64_t r = 0; r < n; ++r)
      normalise(x.as<T>() + r * d, gamma.as<T>(), beta.as<T>(), y.as<T>() + r * d, d, static_cast<T>(eps),
                saved.mean.as<T>()[r], saved.rstd.as<T>()[r]);
  });
  return saved;
}

void LayerNorm::backward(Exec&, const Saved& saved, const Tensor& dy, const Tensor& x, const Tensor& gamma,
                         const Tensor&, Grad dx, Grad dgamma, Grad dbeta) const {
  const std::int64_t n = x.rows(), d = x.cols();
  dispatch(x.dtype, [&]<class T>() {
    for (std::int64_t r = 0; r < n; ++r) {
      const T* row = x.as<T>() + r * d;
      const T* g = dy.as<T>() + r * d;
      const T mean = saved.mean.as<T>()[r], rstd = saved.rstd.as<T>()[r];
      if (dx) add_input_gradient(row, gamma.as<T>(), g, dx.as<T>() + r * d, d, mean, rstd);
      if (dgamma) {
        T* sum = dgamma.as<T>();
#pragma omp simd
        for (std::int64_t i = 0; i < d; ++i) sum[i] += g[i] * ((row[i] - mean) * rstd);
      }
      if (dbeta) {
        T* sum = dbeta.as<T>();
#pragma omp simd
        for (std::int64_t i = 0; i < d; ++i) sum[i] += g[i];
      }
    }
  });
}

}  // namespace polyhead::ops
