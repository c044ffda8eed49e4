#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// Output projection and label-smoothed cross-entropy in one op, over blocks of tokens: logits are never whole in memory.
///   z = W x + b,   ℓ = Σ_tokens (1 − ε)·(−log p_t) + ε/V·Σ_j (−log p_j),  p = softmax(z)      (as torch.nn.CrossEntropyLoss)
///   ∂z = ∂ℓ·(p − (1 − ε)·onehot(t) − ε/V)
/// x [N,d], W [V,d], b [V] or empty -> ℓ [1], summed over the N tokens.
/// With `gradients`, forward forms the gradients of a block while its logits are in cache, so backward only scales them.
/// Throws Error when shapes do not fit or a target is not in 0 … V − 1.
struct ProjectedCrossEntropy {
  Tensor targets;              ///< [N], i32
  double label_smoothing = 0;  ///< ε
  bool gradients = false;      ///< backward will follow
  Tensor token_loss = {};      ///< receives −log p_t of each token, [N], dtype of x; or empty
  Tensor predictions =
      {};  ///< receives the most probable id of each token (the smallest at ties), [N], i32; or empty

  struct Saved {
    Tensor dx, dweight, dbias;  ///< for ∂ℓ = 1
  };
  Shape shape(const Tensor& x, const Tensor& weight, const Tensor& bias) const;
  Saved forward(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& x, const Tensor& weight,
                const Tensor& bias, Grad dx, Grad dweight, Grad dbias) const;
};

}  // namespace polyhead::ops
