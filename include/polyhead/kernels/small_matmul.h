#pragma once

#include <cstdint>

/// Products of matrices of a few dozen rows and columns, where packing for a general product would cost more
/// than the product: the heads of an attention. For float and double. Every element is summed in the order of
/// the inner index.
namespace polyhead::kernels {

/// Element (i, j) stands at data[i·row + j·column]: a row-major matrix, or the transpose of one.
template <class T>
struct Strided {
  const T* data;
  std::int64_t row, column = 1;
};

/// C = A·B, or C += A·B when `accumulate`. A [m,k]; B [k,n] and C [m,n] row-major with ldb and ldc elements a
/// row. A row of C has the same bits whatever m is.
template <class T>
void small_matmul(std::int64_t m, std::int64_t n, std::int64_t k, Strided<T> a, const T* b, std::int64_t ldb,
                  T* c, std::int64_t ldc, bool accumulate);

/// y [columns, ldy] = xᵀ for x [rows, columns]; each row of y is filled with zeros up to a multiple of 64
/// bytes, for which ldy must have room.
template <class T>
void transpose(std::int64_t rows, std::int64_t columns, const T* x, std::int64_t ldx, T* y, std::int64_t ldy);

/// y_j = Σ_l B[j,l]·x[l] for B [n,k] row-major: what a single row of A·Bᵀ needs, without the transpose.
/// y is filled with zeros up to a multiple of 64 bytes.
template <class T>
void dot_rows(std::int64_t n, std::int64_t k, const T* b, std::int64_t ldb, const T* x, T* y);

}  // namespace polyhead::kernels
