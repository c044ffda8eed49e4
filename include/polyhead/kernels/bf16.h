#pragma once

#include <span>

#include "polyhead/tensor/tensor.h"

namespace polyhead::kernels {

/// Whether gemm takes bf16 operands: oneDNN is in, and the processor has AVX512_BF16 or AMX.
bool has_bf16();

/// y_i = x_i rounded to the nearest bf16, ties to even; NaN stays NaN. Both have the same length.
void to_bf16(std::span<const float> x, std::span<BFloat16> y);

/// The f32 of the same value.
float to_float(BFloat16 x);

}  // namespace polyhead::kernels
