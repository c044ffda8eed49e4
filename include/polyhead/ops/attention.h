#pragma once

#include <cstdint>

#include "polyhead/core/exec.h"
#include "polyhead/tensor/segments.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// Multi-head scaled dot-product attention over packed sentences (Vaswani et al. 2017, arXiv:1706.03762):
/// for sentence s and head a, with the rows of s and the columns of a of q, k and v,
///   W_a = dropout(softmax(Q_a K_aᵀ·scale·logit_scale_a + mask))
///   y_a = ξ_a·W_a V_a + (1 − ξ_a)·replacement_a
/// Shapes:
/// q [Nq, h·d_k], k [Nk, h_kv·d_k], v [Nk, h_kv·d_v], gates ξ [1 or sentences, h] or empty (all 1),
/// replacement [1 or Nq, h·d_v] or empty (zero) -> y [Nq, h·d_v].
/// Sentence i of the queries attends to sentence i of the keys. Rows outside every segment give zero.
/// Causal masks align at the end: query i of n sees keys 0 … i + (m − n) of m, so one new row sees all of a
/// cache. A query with no key to see gives zero, one whose scores all overflow NaN. Backward gives the gradients of
/// q, k, v, ξ and replacement.
/// Throws Error when extents, segments or optional tensors do not fit.
struct MultiHeadAttention {
  std::int64_t heads = 1;     ///< h
  std::int64_t kv_heads = 1;  ///< h_kv, divides h: head a reads keys and values of head a·h_kv/h
  Segments query_segments, key_segments;
  bool causal = false;
  double dropout = 0;      ///< on the weights, when training
  std::uint64_t site = 0;  ///< keys the dropout, with sentence, query position, head, and key position
  double scale = 0;        ///< 0: 1/√d_k
  Tensor mask = {};  ///< added before the softmax: [Nq, keys of the longest sentence], −∞ forbids; or empty
  Tensor logit_scale = {};  ///< [h], times the scores (0: uniform attention); or empty
  Tensor weights = {};  ///< tap: receives W before dropout, [Nq, h, keys of the longest sentence]; or empty

  struct Saved {
    /// Of all sentences and heads, laid end to end: the weights, or of a sentence of more than 256 keys,
    /// which backward recomputes block by block, the logarithm of every row's sum of exponentials and the
    /// head's output.
    Tensor kept;
  };
  Shape shape(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gates,
              const Tensor& replacement) const;
  Saved forward(Exec& exec, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gates,
                const Tensor& replacement, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& q, const Tensor& k,
                const Tensor& v, const Tensor& gates, const Tensor& replacement, Grad dq, Grad dk, Grad dv,
                Grad dgates, Grad dreplacement) const;
};

}  // namespace polyhead::ops
