#pragma once

#include <cstdint>

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// How alike the features of heads are: the mean cosine of two heads of a row, summed over rows (the disagreement on
/// subspaces and on outputs of Li et al. 2018, arXiv:1810.10183, without its sign). With x_ti the columns of head i in row t,
///   y = Σ_t 1/h² Σ_i Σ_j cos(x_ti, x_tj) = Σ_t ‖s_t‖²/h²,  s_t = Σ_i u_ti,  u_ti = x_ti/‖x_ti‖
/// A vector of length at most 1e-8 has no direction: u = 0, and no gradient.
/// x [N, h·d] -> y [1].   Throws Error when the columns are not those of h heads.
///   ∂x_ti = 2∂y/h²·(s_t − (s_t·u_ti)·u_ti)/‖x_ti‖
struct HeadCosine {
  std::int64_t heads = 1;  ///< h
  struct Saved {
    Tensor inverse;  // [N, h]: 1/‖x_ti‖, 0 without a direction
    Tensor sum;      // [N, d]: s
  };
  Shape shape(const Tensor& x) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const;
};

}  // namespace polyhead::ops
