#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// y = Σ x;  ∂x += ∂y.   x of any shape -> y [1].
struct Sum {
  struct Saved {};
  Shape shape(const Tensor& x) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const;
};

/// y = Σ x / n;  ∂x += ∂y/n.   x of n elements -> y [1].   Throws Error when x is empty.
struct Mean {
  struct Saved {};
  Shape shape(const Tensor& x) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const;
};

/// y = factor·x;  ∂x += factor·∂y.   y has the shape of x.
struct Scale {
  double factor = 1;
  struct Saved {};
  Shape shape(const Tensor& x) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, Grad dx) const;
};

/// y = a + b;  ∂a += ∂y, ∂b += ∂y.   a, b, y of one shape.   Throws Error when the shapes differ.
struct Add {
  struct Saved {};
  Shape shape(const Tensor& a, const Tensor& b) const;
  Saved forward(Exec& exec, const Tensor& a, const Tensor& b, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& a, const Tensor& b, Grad da,
                Grad db) const;
};

/// y = a ⊙ b;  ∂a += ∂y ⊙ b, ∂b += ∂y ⊙ a.   a, b, y of one shape.   Throws Error when the shapes differ.
struct Mul {
  struct Saved {};
  Shape shape(const Tensor& a, const Tensor& b) const;
  Saved forward(Exec& exec, const Tensor& a, const Tensor& b, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& a, const Tensor& b, Grad da,
                Grad db) const;
};

}  // namespace polyhead::ops
