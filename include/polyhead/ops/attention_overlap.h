#pragma once

#include <cstdint>

#include "polyhead/core/exec.h"
#include "polyhead/tensor/segments.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// How much heads attend to the same positions: the mean over two heads of Σ_k W_i[t,k]·W_j[t,k], summed over queries t (the
/// disagreement on attended positions of Li et al. 2018, arXiv:1810.10183, without its sign). With W_a =
/// softmax(Q_a K_aᵀ/√d_k), the weights of MultiHeadAttention before dropout,
///   y = Σ_t 1/h² Σ_i Σ_j Σ_k W_i[t,k]·W_j[t,k] = Σ_t ‖s_t‖²/h²,  s_t = Σ_i W_i[t,·]
/// q [Nq, h·d_k], k [Nk, h·d_k] -> y [1]. Sentences, causal masks and queries with no key to see as in MultiHeadAttention.
/// Throws Error when extents or segments do not fit.
///   ∂S_a = 2∂y/h²·W_a ⊙ (s − W_a·s)/√d_k row by row,  ∂Q_a = ∂S_a K_a,  ∂K_a = ∂S_aᵀ Q_a
/// Weights are computed for 32 queries at a time, and again in backward: memory grows with n, not n².
struct AttentionOverlap {
  std::int64_t heads = 1;  ///< h
  Segments query_segments, key_segments;
  bool causal = false;
  struct Saved {};
  Shape shape(const Tensor& q, const Tensor& k) const;
  Saved forward(Exec& exec, const Tensor& q, const Tensor& k, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& q, const Tensor& k, Grad dq,
                Grad dk) const;
};

}  // namespace polyhead::ops
