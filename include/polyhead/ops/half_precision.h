#pragma once

#include "polyhead/tensor/tensor.h"

namespace polyhead {

/// Mixed precision (Micikevicius et al. 2018, arXiv:1710.03740, with bf16 in place of f16 and so without scaling the
/// loss): operands of matrix products are rounded to bf16 and their sums are taken in f32. All else (master weights,
/// normalisation, softmax, attention's inner products, loss, gradients, moments) stays f32.
struct HalfPrecision {
  Tensor weights;  ///< f32: the slab of all parameters
  Tensor copies;   ///< bf16: the same elements, rounded once an update

  /// The operand that was rounded last, for who takes the same one next: query, key and value of an attention do.
  struct Kept {
    const void* source = nullptr;
    Tensor copy;
    std::size_t rewinds = 0;  ///< of the arena of activations, where the copy is
  } kept = {};

  /// The part of `copies` that belongs to x, a part of `weights`; empty when it is not one.
  Tensor copy_of(const Tensor& x) const {
    const auto* begin = static_cast<const float*>(weights.data);
    const auto* data = static_cast<const float*>(x.data);
    if (data < begin || data >= begin + weights.size()) return {};
    return {static_cast<BFloat16*>(copies.data) + (data - begin), x.shape, DType::bf16};
  }
};

}  // namespace polyhead
