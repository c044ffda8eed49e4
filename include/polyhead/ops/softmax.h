#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// Over the last extent:  p_i = exp(x_i − max x)/Σ_j exp(x_j − max x);  y = p, or y = log p when `log`.
/// x [..., n] -> y [..., n].   Throws Error when n = 0.
/// ∂x = p ⊙ (∂y − Σ ∂y ⊙ p);  when `log`:  ∂x = ∂y − p·Σ ∂y
struct Softmax {
  bool log = false;
  struct Saved {
    Tensor y;
  };
  Shape shape(const Tensor& x) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const;
};

}  // namespace polyhead::ops
