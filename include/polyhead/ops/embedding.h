#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// y_n = scale·E[ids_n];  ∂E[ids_n] += scale·∂y_n
/// E [V,d], ids [N] i32 -> y [N,d].   Throws Error when an id is not in 0 … V − 1.
struct Embedding {
  Tensor ids;
  double scale = 1;  ///< √d_model in Vaswani et al. 2017
  struct Saved {};
  Shape shape(const Tensor& weight) const;
  Saved forward(Exec& exec, const Tensor& weight, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& weight, Grad dweight) const;
};

/// y_n = x_n + P[positions_n];  ∂x = ∂y;  ∂P[positions_n] += ∂y_n
/// x [N,d], P [max_length,d], positions [N] i32 -> y [N,d].   Throws Error when a position is not in the table.
struct AddPositions {
  Tensor positions;
  struct Saved {};
  Shape shape(const Tensor& x, const Tensor& table) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& table, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, const Tensor& table,
                Grad dx, Grad dtable) const;
};

}  // namespace polyhead::ops
