#include "polyhead/ops/softmax.h"

#include <cmath>
#include <span>

#include "polyhead/kernels/vector_math.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

template <class T>
void forward_row(const T* x, T* y, std::size_t n, bool log) {
  const T shift = kernels::max(std::span<const T>(x, n));
  if (log) {
    const T whole = shift + std::log(kernels::exp_sum(std::span<const T>(x, n), shift));
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) y[i] = x[i] - whole;
  } else {
    const T scale = T{1} / kernels::exp_sum(std::span<const T>(x, n), shift, std::span<T>(y, n));
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) y[i] *= scale;
  }
}

/// p holds exp(y) when `log`, else y.
template <class T>
void backward_row(const T* p, const T* dy, T* dx, std::size_t n, bool log) {
  T sum = 0;
  if (log) {
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < n; ++i) sum += dy[i];
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) dx[i] += dy[i] - p[i] * sum;
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < n; ++i) sum += dy[i] * p[i];
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) dx[i] += p[i] * (dy[i] - sum);
  }
}

}  // namespace

Shape Softmax::shape(const Tensor& x) const {
  require(x.shape.rank() >= 1 && x.cols() > 0, "softmax: x ", x.shape,
          ", expected at least one element a row");
  return x.shape;
}

Softmax::Saved Softmax::forward(Exec&, const Tensor& x, const Tensor& y) const {
  const std::int64_t n = x.cols();
  dispatch(x.dtype, [&]<class T>() {
    for (std::int64_t r = 0; r < x.rows(); ++r)
      forward_row(x.as<T>() + r * n, y.as<T>() + r * n, static_cast<std::size_t>(n), log);
  });
  return {y};
}

void Softmax::backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const {
  if (!dx) return;
  const ArenaScope scope(exec.scratch);
  const std::int64_t n = x.cols();
  dispatch(x.dtype, [&]<class T>() {
    const auto row = exec.scratch.allocate<T>(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < x.rows(); ++r) {
      const T* y = saved.y.as<T>() + r * n;
      if (log)
        kernels::exp(std::span<const T>(y, static_cast<std::size_t>(n)),
                     std::span<T>(row, static_cast<std::size_t>(n)));
      backward_row(log ? row : y, dy.as<T>() + r * n, dx.as<T>() + r * n, static_cast<std::size_t>(n), log);
    }
  });
}

}  // namespace polyhead::ops
