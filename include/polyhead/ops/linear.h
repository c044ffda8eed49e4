#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/ops/activation.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// y = f(x Wᵀ + b)
/// x [N,in], W [out,in], b [out] or empty -> y [N,out].   Throws Error when extents do not fit.
/// with g = ∂y ⊙ f′(x Wᵀ + b):  ∂x = g W;  ∂W = gᵀ x;  ∂b = Σ g
struct Linear {
  Activation activation = Activation::none;
  struct Saved {
    Tensor pre_activation;  ///< x Wᵀ + b where f′ needs it (gelu, swish); else empty
    Tensor y;
    Tensor x;  ///< as an operand of matrix products: rounded in mixed precision
  };
  Shape shape(const Tensor& x, const Tensor& weight, const Tensor& bias) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, const Tensor& weight,
                const Tensor& bias, Grad dx, Grad dweight, Grad dbias) const;
};

}  // namespace polyhead::ops
