#include "polyhead/ops/elementwise.h"

namespace polyhead::ops {
namespace {

template <class T>
T sum_of(const Tensor& x) {
  const T* in = x.as<T>();
  const std::int64_t n = x.size();
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += in[i];
  return sum;
}

/// to[i] += f(i) for every element.
template <class T, class F>
void add_each(Grad to, const F& f) {
  if (!to) return;
  T* out = to.as<T>();
  const std::int64_t n = to.tensor.size();
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] += f(i);
}

/// y[i] = f(i) for every element.
template <class T, class F>
void set_each(const Tensor& y, const F& f) {
  T* out = y.as<T>();
  const std::int64_t n = y.size();
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = f(i);
}

Shape same_shape(const char* op, const Tensor& a, const Tensor& b) {
  require(a.shape == b.shape, op, ": a ", a.shape, " and b ", b.shape, ", expected the same shape");
  return a.shape;
}

}  // namespace

Shape Sum::shape(const Tensor&) const { return {1}; }

Sum::Saved Sum::forward(Exec&, const Tensor& x, const Tensor& y) const {
  dispatch(x.dtype, [&]<class T>() { *y.as<T>() = sum_of<T>(x); });
  return {};
}

void Sum::backward(Exec&, const Saved&, const Tensor& dy, const Tensor& x, Grad dx) const {
  dispatch(x.dtype, [&]<class T>() {
    const T g = *dy.as<T>();
    add_each<T>(dx, [g](std::int64_t) { return g; });
  });
}

Shape Mean::shape(const Tensor& x) const {
  require(x.size() > 0, "mean: x ", x.shape, ", expected at least one element");
  return {1};
}

Mean::Saved Mean::forward(Exec&, const Tensor& x, const Tensor& y) const {
  dispatch(x.dtype, [&]<class T>() { *y.as<T>() = sum_of<T>(x) / static_cast<T>(x.size()); });
  return {};
}

void Mean::backward(Exec&, const Saved&, const Tensor& dy, const Tensor& x, Grad dx) const {
  dispatch(x.dtype, [&]<class T>() {
    const T g = *dy.as<T>() / static_cast<T>(x.size());
    add_each<T>(dx, [g](std::int64_t) { return g; });
  });
}

Shape Scale::shape(const Tensor& x) const { return x.shape; }

Scale::Saved Scale::forward(Exec&, const Tensor& x, const Tensor& y) const {
  dispatch(x.dtype, [&]<class T>() {
    set_each<T>(y, [in = x.as<T>(), c = static_cast<T>(factor)](std::int64_t i) { return c * in[i]; });
  });
  return {};
}

void Scale::backward(Exec&, const Saved&, const Tensor& dy, const Tensor& x, Grad dx) const {
  dispatch(x.dtype, [&]<class T>() {
    add_each<T>(dx, [g = dy.as<T>(), c = static_cast<T>(factor)](std::int64_t i) { return c * g[i]; });
  });
}

Shape Add::shape(const Tensor& a, const Tensor& b) const { return same_shape("add", a, b); }

Add::Saved Add::forward(Exec&, const Tensor& a, const Tensor& b, const Tensor& y) const {
  dispatch(y.dtype, [&]<class T>() {
    set_each<T>(y, [p = a.as<T>(), q = b.as<T>()](std::int64_t i) { return p[i] + q[i]; });
  });
  return {};
}

void Add::backward(Exec&, const Saved&, const Tensor& dy, const Tensor&, const Tensor&, Grad da,
                   Grad db) const {
  dispatch(dy.dtype, [&]<class T>() {
    const T* g = dy.as<T>();
    add_each<T>(da, [g](std::int64_t i) { return g[i]; });
    add_each<T>(db, [g](std::int64_t i) { return g[i]; });
  });
}

Shape Mul::shape(const Tensor& a, const Tensor& b) const { return same_shape("mul", a, b); }

Mul::Saved Mul::forward(Exec&, const Tensor& a, const Tensor& b, const Tensor& y) const {
  dispatch(y.dtype, [&]<class T>() {
    set_each<T>(y, [p = a.as<T>(), q = b.as<T>()](std::int64_t i) { return p[i] * q[i]; });
  });
  return {};
}

void Mul::backward(Exec&, const Saved&, const Tensor& dy, const Tensor& a, const Tensor& b, Grad da,
                   Grad db) const {
  dispatch(dy.dtype, [&]<class T>() {
    const T* g = dy.as<T>();
    add_each<T>(da, [g, q = b.as<T>()](std::int64_t i) { return g[i] * q[i]; });
    add_each<T>(db, [g, p = a.as<T>()](std::int64_t i) { return g[i] * p[i]; });
  });
}

}  // namespace polyhead::ops
