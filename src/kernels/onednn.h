#pragma once

#include <cstdint>
#include <span>

namespace polyhead {
class Arena;
}

/// The only door to oneDNN; defined when POLYHEAD_ONEDNN is.
namespace polyhead::kernels::onednn {

/// What a primitive is made for.
struct Problem {
  std::int64_t m, n, k, lda, ldb, ldc;
  bool a_transposed, b_transposed, accumulate, bf16;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Whether this machine multiplies bf16 in hardware.
bool has_bf16();

/// C = op(A)·op(B) or C += op(A)·op(B), of f32 (in strict f32) or bf16 operands, summed in f32, on as many threads as
/// OpenMP offers. The extent that counts tokens (m, or k when A is transposed) takes one of `extents`: the first product
/// of its kind on a thread prepares them all, so that no batch that comes later waits for a primitive or takes memory for
/// it.
void multiply(Arena& scratch, const Problem& problem, std::span<const std::int64_t> extents, const void* a,
              const void* b, float* c);

}  // namespace polyhead::kernels::onednn
