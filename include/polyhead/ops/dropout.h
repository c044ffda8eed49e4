#pragma once

#include <cstdint>

#include "polyhead/core/exec.h"
#include "polyhead/tensor/segments.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// y = x ⊙ m/(1 − p), m keyed by (update, site, sentence in the update, position, feature); y = x when not training.
/// x [N,d] -> y [N,d]; rows outside every segment are passed on unchanged.   Srivastava et al. 2014
/// Masks are not stored: backward draws them again.   Throws Error unless 0 <= p < 1 and the segments lie in the rows.
struct Dropout {
  double p = 0;
  std::uint64_t site = 0;
  Segments segments = {};
  struct Saved {};
  Shape shape(const Tensor& x) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const;
};

/// y = x + dropout(f): the residual connection around a sub-layer, in one pass. p = 0 is the plain residual.
/// x, f [N,d] -> y [N,d].   Throws as Dropout, and when x and f differ in shape.
struct ResidualDropout {
  double p = 0;
  std::uint64_t site = 0;
  Segments segments = {};
  struct Saved {};
  Shape shape(const Tensor& x, const Tensor& f) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& f, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, const Tensor& f, Grad dx,
                Grad df) const;
};

}  // namespace polyhead::ops
