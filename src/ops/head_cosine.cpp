#include "polyhead/ops/head_cosine.h"

#include <algorithm>
#include <cmath>

#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

constexpr double shortest = 1e-8;

template <class T>
T dot(const T* a, const T* b, std::int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Of one row: the heads' inverse lengths and the sum of their directions.
template <class T>
void add_directions(const T* x, std::int64_t heads, std::int64_t dim, T* inverse, T* sum) {
  std::fill_n(sum, dim, T{0});
  for (std::int64_t i = 0; i < heads; ++i, x += dim) {
    const T squares = dot(x, x, dim), length = std::sqrt(squares);
    // Not 1/length: where squares overflow this is NaN.
    const T scale = inverse[i] = length <= static_cast<T>(shortest) ? T{0} : length / squares;
#pragma omp simd
    for (std::int64_t c = 0; c < dim; ++c) sum[c] += scale * x[c];
  }
}

/// Of one head: dx += factor·(s − (s·u)·u)/‖x‖.
template <class T>
void add_gradient(const T* x, const T* sum, T inverse, T factor, std::int64_t dim, T* dx) {
  const T outer = factor * inverse, along = dot(sum, x, dim) * inverse * inverse;
#pragma omp simd
  for (std::int64_t c = 0; c < dim; ++c) dx[c] += outer * (sum[c] - along * x[c]);
}

}  // namespace

Shape HeadCosine::shape(const Tensor& x) const {
  require(heads > 0 && x.shape.rank() == 2 && x.cols() > 0 && x.cols() % heads == 0, "cosine of heads: x ",
          x.shape, ", expected a matrix with columns for ", heads, " heads");
  return {1};
}

HeadCosine::Saved HeadCosine::forward(Exec& exec, const Tensor& x, const Tensor& y) const {
  const std::int64_t rows = x.shape[0], width = x.cols(), dim = width / heads;
  const Saved saved{exec.activations.tensor({rows, heads}, x.dtype),
                    exec.activations.tensor({rows, dim}, x.dtype)};
  dispatch(x.dtype, [&]<class T>() {
    double total = 0;
    for (std::int64_t t = 0; t < rows; ++t) {
      T* sum = saved.sum.as<T>() + t * dim;
      add_directions(x.as<T>() + t * width, heads, dim, saved.inverse.as<T>() + t * heads, sum);
      total += static_cast<double>(dot(sum, sum, dim));
    }
    *y.as<T>() = static_cast<T>(total / static_cast<double>(heads * heads));
  });
  return saved;
}

void HeadCosine::backward(Exec&, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const {
  if (!dx) return;
  const std::int64_t dim = x.cols() / heads;
  dispatch(x.dtype, [&]<class T>() {
    const T factor = 2 * *dy.as<T>() / static_cast<T>(heads * heads);
    for (std::int64_t i = 0; i < x.shape[0] * heads; ++i)
      add_gradient(x.as<T>() + i * dim, saved.sum.as<T>() + i / heads * dim, saved.inverse.as<T>()[i], factor,
                   dim, dx.as<T>() + i * dim);
  });
}

}  // namespace polyhead::ops
