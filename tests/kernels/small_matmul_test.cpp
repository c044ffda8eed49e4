#include "polyhead/kernels/small_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace polyhead::kernels {
namespace {

template <class T>
class SmallMatmul : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SmallMatmul, Types);

template <class T>
std::vector<T> wave(std::int64_t n, double phase) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(std::sin(static_cast<double>(i) * 0.7 + phase));
  return x;
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

TYPED_TEST(SmallMatmul, MatchesThreeLoopsInEveryShapeAndWritesNothingElse) {
  using T = TypeParam;
  for (const std::int64_t m : {0, 1, 5, 8, 9, 25})
    for (const std::int64_t n : {0, 1, 7, 8, 16, 17, 31, 32, 33, 65})
      for (const std::int64_t k : {0, 1, 3, 32})
        for (const bool transposed : {false, true})
          for (const bool accumulate : {false, true}) {
            const std::int64_t ldb = n + 3, ldc = n + 5;
            const std::vector<T> a = wave<T>(m * k, 0), b = wave<T>(k * ldb, 1), before = wave<T>(m * ldc, 2);
            std::vector<T> c = before;
            const Strided<T> view = transposed ? Strided<T>{a.data(), 1, m} : Strided<T>{a.data(), k};
            // No element beyond the last row's n may be touched, nor read from B.
            small_matmul(m, n, k, view, b.data(), ldb, c.data(), ldc, accumulate);
            for (std::int64_t i = 0; i < m; ++i)
              for (std::int64_t j = 0; j < ldc; ++j) {
                double sum = j < n && !accumulate
                                 ? 0
                                 : static_cast<double>(before[static_cast<std::size_t>(i * ldc + j)]);
                for (std::int64_t l = 0; j < n && l < k; ++l)
                  sum += static_cast<double>(view.data[i * view.row + l * view.column]) *
                         static_cast<double>(b[static_cast<std::size_t>(l * ldb + j)]);
                ASSERT_NEAR(static_cast<double>(c[static_cast<std::size_t>(i * ldc + j)]), sum, tolerance<T>)
                    << m << " " << n << " " << k << ", element " << i << ", " << j;
              }
          }
}

TYPED_TEST(SmallMatmul, RowsDoNotDependOnTheNumberOfRows) {
  using T = TypeParam;
  const std::int64_t n = 21, k = 19;
  const std::vector<T> a = wave<T>(30 * k, 0), b = wave<T>(k * n, 1);
  std::vector<T> all(30 * n);
  small_matmul<T>(30, n, k, {a.data(), k}, b.data(), n, all.data(), n, false);
  for (std::int64_t m = 1; m < 30; ++m) {
    std::vector<T> some(static_cast<std::size_t>(m * n));
    small_matmul<T>(m, n, k, {a.data(), k}, b.data(), n, some.data(), n, false);
    EXPECT_EQ(some, std::vector<T>(all.begin(), all.begin() + m * n));
  }
}

TYPED_TEST(SmallMatmul, TransposeFillsWithZeros) {
  using T = TypeParam;
  const std::int64_t lanes = 64 / static_cast<std::int64_t>(sizeof(T));
  for (const std::int64_t rows : {1, 8, 15, 16, 40})
    for (const std::int64_t columns : {1, 5, 16, 33}) {
      const std::int64_t ldx = columns + 2, padded = (rows + lanes - 1) / lanes * lanes;
      const std::vector<T> x = wave<T>(rows * ldx, 0);
      std::vector<T> y(static_cast<std::size_t>(columns * padded), T{9});
      transpose(rows, columns, x.data(), ldx, y.data(), padded);
      for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t i = 0; i < padded; ++i)
          ASSERT_EQ(y[static_cast<std::size_t>(j * padded + i)],
                    i < rows ? x[static_cast<std::size_t>(i * ldx + j)] : T{0});
    }
}

TYPED_TEST(SmallMatmul, DotRowsMatchesTheSums) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 8, 16, 23, 50})
    for (const std::int64_t k : {1, 8, 16, 31, 64}) {
      const std::int64_t ldb = k + 1;
      const std::vector<T> b = wave<T>(n * ldb, 0), x = wave<T>(k, 1);
      std::vector<T> y(64);
      dot_rows(n, k, b.data(), ldb, x.data(), y.data());
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(b[static_cast<std::size_t>(j * ldb + l)]) *
                 static_cast<double>(x[static_cast<std::size_t>(l)]);
        ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(j)]), sum, tolerance<T>);
      }
    }
}

}  // namespace
}  // namespace polyhead::kernels
