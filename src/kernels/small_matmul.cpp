#include "polyhead/kernels/small_matmul.h"

#include <algorithm>
#include <array>
#include <utility>

#include "polyhead/kernels/simd.h"

namespace polyhead::kernels {
namespace {

constexpr int max_rows = 8, max_vectors = 2;

/// `rows` rows and `vectors` vectors of C, of the last of which `last` lanes exist (all of them unless
/// `partial`).
template <int rows, int vectors, bool partial, class T>
void tile(std::int64_t k, Strided<T> a, const T* b, std::int64_t ldb, T* c, std::int64_t ldc,
          std::int64_t last, bool accumulate) {
  constexpr std::int64_t step = simd::lanes<T>;
  simd::Vec<T> sum[rows][vectors] = {};
  for (std::int64_t l = 0; l < k; ++l) {
    simd::Vec<T> row[vectors];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j)
      row[j] = partial && j == vectors - 1 ? simd::load_first(b + l * ldb + j * step, last, T{0})
                                           : simd::load(b + l * ldb + j * step);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const T factor = a.data[i * a.row + l * a.column];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) sum[i][j] += factor * row[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      T* out = c + i * ldc + j * step;
      if (partial && j == vectors - 1) {
        simd::store_first(out, last, accumulate ? simd::load_first(out, last, T{0}) + sum[i][j] : sum[i][j]);
      } else {
        simd::store(out, accumulate ? simd::load(out) + sum[i][j] : sum[i][j]);
      }
    }
  }
}

template <class T>
using Tile = void (*)(std::int64_t, Strided<T>, const T*, std::int64_t, T*, std::int64_t, std::int64_t, bool);

/// The tiles of 1 … max_rows rows.
template <int vectors, bool partial, class T, int... i>
constexpr std::array<Tile<T>, max_rows> tiles(std::integer_sequence<int, i...>) {
  return {tile<i + 1, vectors, partial, T>...};
}

}  // namespace

template <class T>
void small_matmul(std::int64_t m, std::int64_t n, std::int64_t k, Strided<T> a, const T* b, std::int64_t ldb,
                  T* c, std::int64_t ldc, bool accumulate) {
  constexpr std::make_integer_sequence<int, max_rows> all;
  static constexpr std::array<Tile<T>, max_rows> table[max_vectors][2] = {
      {tiles<1, false, T>(all), tiles<1, true, T>(all)}, {tiles<2, false, T>(all), tiles<2, true, T>(all)}};
  constexpr std::int64_t step = simd::lanes<T>;
  if (m <= 0) return;
  // Tiles of equal height: a last tile of one row would wait for its own sums.
  const std::int64_t bands = (m + max_rows - 1) / max_rows, height = m / bands, taller = m % bands;
  for (std::int64_t j = 0; j < n; j += max_vectors * step) {
    const std::int64_t width = std::min(n - j, max_vectors * step), last = width % step;
    const auto& column = table[width > step][last != 0];
    for (std::int64_t band = 0, i = 0; band < bands; ++band) {
      const std::int64_t rows = height + (band < taller);
      column[static_cast<std::size_t>(rows - 1)](k, {a.data + i * a.row, a.row, a.column}, b + j, ldb,
                                                 c + i * ldc + j, ldc, last, accumulate);
      i += rows;
    }
  }
}

template <class T>
void transpose(std::int64_t rows, std::int64_t columns, const T* x, std::int64_t ldx, T* y,
               std::int64_t ldy) {
  constexpr std::int64_t step = simd::lanes<T>;
  for (std::int64_t i = 0; i < rows; i += step) {
    const std::int64_t height = std::min(step, rows - i);
    for (std::int64_t j = 0; j < columns; j += step) {
      const std::int64_t width = std::min(step, columns - j);
      simd::Vec<T> block[step];
      for (std::int64_t r = 0; r < step; ++r) {
        const T* row = x + (i + r) * ldx + j;
        block[r] = r >= height     ? simd::Vec<T>{}
                   : width == step ? simd::load(row)
                                   : simd::load_first(row, width, T{0});
      }
      simd::transpose<T>(block);
      for (std::int64_t r = 0; r < width; ++r) simd::store(y + (j + r) * ldy + i, block[r]);
    }
  }
}

template <class T>
void dot_rows(std::int64_t n, std::int64_t k, const T* b, std::int64_t ldb, const T* x, T* y) {
  constexpr std::int64_t step = simd::lanes<T>;
  for (std::int64_t j = 0; j < n; j += step) {
    const std::int64_t rows = std::min(step, n - j);
    // A full set of rows keeps the sums in registers; the last one stands in for those that are not there.
    const T* row[step];
    for (std::int64_t r = 0; r < step; ++r) row[r] = b + (j + std::min(r, rows - 1)) * ldb;
    simd::Vec<T> sums[step] = {};
    std::int64_t l = 0;
    for (; l + step <= k; l += step) {
      const simd::Vec<T> part = simd::load(x + l);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < step; ++r) sums[r] += part * simd::load(row[r] + l);
    }
    if (l < k) {
      const simd::Vec<T> part = simd::load_first(x + l, k - l, T{0});
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < step; ++r) sums[r] += part * simd::load_first(row[r] + l, k - l, T{0});
    }
    simd::store(y + j, simd::select_first<T>(rows, simd::sum_each<T>(sums), simd::Vec<T>{}));
  }
}

template void small_matmul(std::int64_t, std::int64_t, std::int64_t, Strided<float>, const float*,
                           std::int64_t, float*, std::int64_t, bool);
template void transpose(std::int64_t, std::int64_t, const float*, std::int64_t, float*, std::int64_t);
template void dot_rows(std::int64_t, std::int64_t, const float*, std::int64_t, const float*, float*);
template void small_matmul(std::int64_t, std::int64_t, std::int64_t, Strided<double>, const double*,
                           std::int64_t, double*, std::int64_t, bool);
template void transpose(std::int64_t, std::int64_t, const double*, std::int64_t, double*, std::int64_t);
template void dot_rows(std::int64_t, std::int64_t, const double*, std::int64_t, const double*, double*);

}  // namespace polyhead::kernels
