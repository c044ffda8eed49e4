#include "polyhead/ops/linear.h"

#include "activate.h"
#include "operand.h"
#include "polyhead/kernels/gemm.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

using kernels::Transpose;

template <class T>
void add_bias(const T* bias, T* row, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) row[i] += bias[i];
}

}  // namespace

Shape Linear::shape(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
  require(x.shape.rank() >= 1 && weight.shape.rank() == 2 && weight.cols() == x.cols(), "linear: weight ",
          weight.shape, " for x ", x.shape, ", expected [out, in] for [..., in]");
  const std::int64_t out = weight.rows();
  require(!bias || bias.shape == Shape{out}, "linear: bias ", bias.shape, " for weight ", weight.shape,
          ", expected [", out, "]");
  const Shape& s = x.shape;
  switch (s.rank()) {
    case 1:
      return {out};
    case 2:
      return {s[0], out};
    case 3:
      return {s[0], s[1], out};
    default:
      return {s[0], s[1], s[2], out};
  }
}

Linear::Saved Linear::forward(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& y) const {
  const Saved saved{gradient_needs_input(activation) ? exec.activations.tensor(y.shape, y.dtype) : Tensor{},
                    y, kept_operand(exec, x)};
  const Tensor z = saved.pre_activation ? saved.pre_activation : y;
  {
    const ArenaScope scope(exec.scratch);
    kernels::gemm(exec.scratch, Transpose::no, Transpose::yes, saved.x, operand(exec, weight), z, false);
  }
  if (!bias && activation == Activation::none) return saved;
  const std::int64_t n = y.cols();
  dispatch(y.dtype, [&]<class T>() {
    for (std::int64_t r = 0; r < y.rows(); ++r) {
      T* row = z.as<T>() + r * n;
      if (bias) add_bias(bias.as<T>(), row, n);
      activate(activation, row, y.as<T>() + r * n, n);
    }
  });
  return saved;
}

void Linear::backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor&, const Tensor& weight,
                      const Tensor&, Grad dx, Grad dweight, Grad dbias) const {
  const ArenaScope scope(exec.scratch);
  const std::int64_t n = dy.cols();
  const bool linear = activation == Activation::none;
  const Tensor g = linear ? dy : exec.scratch.tensor(dy.shape, dy.dtype);
  const Tensor& z = saved.pre_activation ? saved.pre_activation : saved.y;
  dispatch(dy.dtype, [&]<class T>() {
    for (std::int64_t r = 0; r < dy.rows() && (dbias || !linear); ++r) {
      T* row = g.as<T>() + r * n;
      if (!linear) activation_gradient(activation, z.as<T>() + r * n, dy.as<T>() + r * n, row, n);
      if (dbias) add_bias(row, dbias.as<T>(), n);
    }
  });
  const Tensor left = operand(exec, g);
  if (dx)
    kernels::gemm(exec.scratch, Transpose::no, Transpose::no, left, operand(exec, weight), dx.tensor, true);
  if (dweight)
    kernels::gemm(exec.scratch, Transpose::yes, Transpose::no, left, saved.x, dweight.tensor, true);
}

}  // namespace polyhead::ops
