#pragma once

#include "polyhead/core/exec.h"
#include "polyhead/kernels/bf16.h"
#include "polyhead/ops/half_precision.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {

/// x in bf16.
inline Tensor rounded(Arena& arena, const Tensor& x) {
  const Tensor copy = arena.tensor(x.shape, DType::bf16);
  kernels::to_bf16(x.span<float>(), copy.span<BFloat16>());
  return copy;
}

/// x as an operand of a matrix product where that is there already: x itself outside of mixed precision, the copy of a
/// parameter in it; else empty.
inline Tensor ready_operand(const Exec& exec, const Tensor& x) {
  return exec.half && x.dtype == DType::f32 ? exec.half->copy_of(x) : x;
}

/// x as an operand of a matrix product: in mixed precision its bf16 copy, made in scratch where x is not a parameter.
inline Tensor operand(Exec& exec, const Tensor& x) {
  const Tensor ready = ready_operand(exec, x);
  return ready || !x ? ready : rounded(exec.scratch, x);
}

/// The same for an operand that backward will want again: the copy is among the activations.
inline Tensor kept_operand(Exec& exec, const Tensor& x) {
  const Tensor ready = ready_operand(exec, x);
  if (ready || !x) return ready;
  HalfPrecision::Kept& kept = exec.half->kept;
  if (kept.source != x.data || kept.copy.shape != x.shape || kept.rewinds != exec.activations.rewinds())
    kept = {x.data, rounded(exec.activations, x), exec.activations.rewinds()};
  return kept.copy;
}

}  // namespace polyhead::ops
