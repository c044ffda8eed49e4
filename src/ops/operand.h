#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/kernels/bf16.h"
#include "polyhead/ops/half_precision.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {

/// x as an operand of a matrix product: in mixed precision its bf16 copy, made in scratch where x is not a parameter.
inline Tensor operand(Exec& exec, const Tensor& x) {
  if (!exec.half || x.dtype != DType::f32 || !x) return x;
  if (const Tensor copy = exec.half->copy_of(x)) return copy;
  const Tensor copy = exec.scratch.tensor(x.shape, DType::bf16);
  kernels::to_bf16(x.span<float>(), copy.span<BFloat16>());
  return copy;
}

/// The same for an operand that backward will want again: the copy is among the activations.
inline Tensor kept_operand(Exec& exec, const Tensor& x) {
  if (!exec.half || x.dtype != DType::f32 || !x) return x;
  if (const Tensor copy = exec.half->copy_of(x)) return copy;
  HalfPrecision::Kept& kept = exec.half->kept;
  if (kept.source != x.data || kept.copy.shape != x.shape || kept.rewinds != exec.activations.rewinds()) {
    const Tensor copy = exec.activations.tensor(x.shape, DType::bf16);
    kernels::to_bf16(x.span<float>(), copy.span<BFloat16>());
    kept = {x.data, copy, exec.activations.rewinds()};
  }
  return kept.copy;
}

}  // namespace polyhead::ops
