#pragma once

#include <cstdint>

#include "polyhead/tensor/tensor.h"

namespace polyhead {
class Arena;
}

namespace polyhead::kernels {

enum class Transpose : bool { no, yes };

/// C = op(A)·op(B), or C += op(A)·op(B) when `accumulate`; op is the identity or the transpose.
/// op(A) [m,k], op(B) [k,n], C [m,n], all row-major with the given leading dimensions (elements between rows,
/// as stored). Single-threaded. f32 through oneDNN (or Eigen, POLYHEAD_ONEDNN=OFF), f64 through Eigen, and where
/// has_bf16() bf16 operands, whose products are exact and summed in f32.
/// A not transposed: a row of C has the same bits whatever m is and wherever the row stands. A transposed, as
/// in the gradient of a weight: the bits are a function of m, n and k. These two extents (m, or k under a
/// transposed A) may count tokens and change with every call; a new value of another extent or leading
/// dimension costs about 0.2 ms once a thread. `scratch` holds temporaries and is rewound.
template <class In, class Out>
void gemm(Arena& scratch, Transpose a_transposed, Transpose b_transposed, std::int64_t m, std::int64_t n,
          std::int64_t k, const In* a, std::int64_t lda, const In* b, std::int64_t ldb, Out* c,
          std::int64_t ldc, bool accumulate);

/// The same over whole matrices; Error when shapes do not fit.
void gemm(Arena& scratch, Transpose a_transposed, Transpose b_transposed, const Tensor& a, const Tensor& b,
          const Tensor& c, bool accumulate);

}  // namespace polyhead::kernels
