#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// y = γ ⊙ x̂ + β,  x̂ = (x − μ)/√(σ² + ε)                        Ba et al. 2016, arXiv:1607.06450
/// x [N,d], γ,β [d] -> y [N,d].   Throws Error when γ or β is not [d].
/// A row whose σ² overflows gives NaN.
/// with ĝ = γ ⊙ ∂y:  ∂x = (ĝ − mean ĝ − x̂·mean(ĝ ⊙ x̂))/√(σ² + ε);  ∂γ = Σ ∂y ⊙ x̂;  ∂β = Σ ∂y
struct LayerNorm {
  double eps = 1e-5;
  struct Saved {
    Tensor mean, rstd;  // [N] each
  };
  Shape shape(const Tensor& x, const Tensor& gamma, const Tensor& beta) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, const Tensor& gamma,
                const Tensor& beta, Grad dx, Grad dgamma, Grad dbeta) const;
};

}  // namespace polyhead::ops
