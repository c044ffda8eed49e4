#include "polyhead/kernels/gemm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "polyhead/core/parallel.h"
#include "polyhead/core/rng.h"
#include "polyhead/tensor/arena.h"
#include "support/check_op.h"

namespace polyhead::kernels {
namespace {

using ::polyhead::testing::error_of;
using ::polyhead::testing::random_tensor;

constexpr Transpose no = Transpose::no, yes = Transpose::yes;

/// A product with its operands as stored; the naive sum is taken in double.
struct Case {
  Transpose ta, tb;
  std::int64_t m, n, k;
  std::int64_t slack = 0;  ///< unused elements at the end of every row
  bool accumulate = false;

  std::int64_t lda() const { return (ta == yes ? m : k) + slack; }
  std::int64_t ldb() const { return (tb == yes ? k : n) + slack; }
  std::int64_t ldc() const { return n + slack; }
};

template <class T>
void expect_naive(const Case& p) {
  SCOPED_TRACE(::testing::Message() << "ta " << (p.ta == yes) << " tb " << (p.tb == yes) << " m " << p.m
                                    << " n " << p.n << " k " << p.k << " slack " << p.slack << " accumulate "
                                    << p.accumulate);
  Arena arena, scratch;
  const Tensor a = random_tensor(arena, {p.ta == yes ? p.k : p.m, p.lda()}, dtype_of<T>(), 1);
  const Tensor b = random_tensor(arena, {p.tb == yes ? p.n : p.k, p.ldb()}, dtype_of<T>(), 2);
  const Tensor c = random_tensor(arena, {p.m, p.ldc()}, dtype_of<T>(), 3);
  const Tensor before = arena.tensor(c.shape, c.dtype);
  copy(c, before);
  gemm<T>(scratch, p.ta, p.tb, p.m, p.n, p.k, a.as<T>(), p.lda(), b.as<T>(), p.ldb(), c.as<T>(), p.ldc(),
          p.accumulate);
  EXPECT_EQ(scratch.mark(), 0u);
  const double tolerance = std::numeric_limits<T>::epsilon() * (4 + static_cast<double>(p.k));
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.ldc(); ++j) {
      const double old = before.as<T>()[i * p.ldc() + j];
      double sum = p.accumulate || j >= p.n ? old : 0;
      for (std::int64_t l = 0; l < p.k && j < p.n; ++l)
        sum += static_cast<double>(a.as<T>()[p.ta == yes ? l * p.lda() + i : i * p.lda() + l]) *
               static_cast<double>(b.as<T>()[p.tb == yes ? j * p.ldb() + l : l * p.ldb() + j]);
      ASSERT_NEAR(c.as<T>()[i * p.ldc() + j], sum, tolerance) << i << ", " << j;
    }
}

TEST(Gemm, AgreesWithTheNaiveSumForEveryTransposeStrideAndRemainder) {
  for (const Transpose ta : {no, yes})
    for (const Transpose tb : {no, yes})
      for (const std::int64_t slack : {0, 3, 16})
        for (const bool accumulate : {false, true})
          for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                        {1, 32, 17},
                                        {5, 7, 3},
                                        {33, 16, 64},
                                        {130, 48, 31},
                                        {3, 1, 70},
                                        {64, 33, 163},
                                        {31, 5, 128}}) {
            expect_naive<float>({ta, tb, m, n, k, slack, accumulate});
            expect_naive<double>({ta, tb, m, n, k, slack, accumulate});
          }
}

TEST(Gemm, CutsLongRowCountsAndSums) {
  for (const bool accumulate : {false, true}) {
    expect_naive<float>({no, yes, 1291, 24, 16, 0, accumulate});
    expect_naive<double>({no, yes, 1291, 24, 16, 0, accumulate});
    expect_naive<float>({yes, no, 24, 16, 1291, 0, accumulate});
    expect_naive<double>({yes, no, 24, 16, 1291, 0, accumulate});
    expect_naive<float>({yes, no, 1000, 16, 65, 0, accumulate});
  }
}

/// Rows 0 … m − 1 computed alone, and rows from the middle, against the same rows of one large product.
template <class T>
void expect_rows_independent(Transpose tb, std::int64_t n, std::int64_t k, bool accumulate) {
  SCOPED_TRACE(::testing::Message() << name(dtype_of<T>()) << " tb " << (tb == yes) << " n " << n << " k "
                                    << k << " accumulate " << accumulate);
  constexpr std::int64_t most = 300;
  Arena arena, scratch;
  const Tensor a = random_tensor(arena, {most, k}, dtype_of<T>(), 1);
  const Tensor b = random_tensor(arena, tb == yes ? Shape{n, k} : Shape{k, n}, dtype_of<T>(), 2);
  const Tensor start = random_tensor(arena, {most, n}, dtype_of<T>(), 3);
  const Tensor whole = arena.tensor({most, n}, dtype_of<T>()), part = arena.tensor({most, n}, dtype_of<T>());
  copy(start, whole);
  gemm(scratch, no, tb, a, b, whole, accumulate);
  const auto check = [&](std::int64_t first, std::int64_t m) {
    copy(start, part);
    const T* rows = a.as<T>() + first * k;
    T* c = part.as<T>() + first * n;
    gemm<T>(scratch, no, tb, m, n, k, rows, a.cols(), b.as<T>(), b.cols(), c, n, accumulate);
    ASSERT_EQ(std::memcmp(c, whole.as<T>() + first * n, static_cast<std::size_t>(m * n) * sizeof(T)), 0)
        << "rows " << first << " to " << first + m;
  };
  for (std::int64_t m = 1; m <= 130; m += n * k > 30'000 ? 7 : 1) check(0, m);
  for (const std::int64_t first : {1, 2, 3, 5, 8, 13, 64, 101, 170})
    for (const std::int64_t m : {1, 31, 32, 64, 127, 130}) check(first, m);
}

TEST(Gemm, ARowHasTheSameBitsWhateverStandsAroundIt) {
  for (const std::int64_t n : {32, 64, 128, 256, 512, 1000, 1003})
    for (const std::int64_t k : {32, 64, 128, 256, 512, 1001}) {
      expect_rows_independent<float>(yes, n, k, false);
      expect_rows_independent<float>(no, n, k, true);
    }
  for (const std::int64_t n : {1, 3, 8, 32, 100})
    for (const std::int64_t k : {1, 5, 32, 100, 1000}) {
      expect_rows_independent<double>(yes, n, k, false);
      expect_rows_independent<double>(no, n, k, true);
      expect_rows_independent<float>(yes, n, k, true);
      expect_rows_independent<float>(no, n, k, false);
    }
}

TEST(Gemm, BitsDoNotDependOnThreadsNorOnAParallelRegion) {
  Arena arena;
  const Tensor a = random_tensor(arena, {517, 128}, DType::f32, 1),
               b = random_tensor(arena, {256, 128}, DType::f32, 2);
  std::vector<Tensor> results;
  for (int i = 0; i < 6; ++i) results.push_back(arena.tensor({517, 256}, DType::f32));
  const auto multiply = [&](const Tensor& c) {
    Arena scratch;
    gemm(scratch, no, yes, a, b, c, false);
  };
  const int threads = omp_get_max_threads();
  omp_set_num_threads(4);
  multiply(results[0]);
  EXPECT_EQ(omp_get_max_threads(), 4);  // what the caller set is left alone
  omp_set_num_threads(threads);
  multiply(results[1]);
  parallel_for(2, 4, [&](std::int64_t i, int) { multiply(results[static_cast<std::size_t>(i + 2)]); });
  for (const Tensor& c : results) EXPECT_EQ(std::memcmp(c.data, results[0].data, c.bytes()), 0);
}

TEST(Gemm, EmptyExtents) {
  Arena scratch;
  float a[4] = {1, 2, 3, 4}, b[4] = {1, 2, 3, 4}, c[4] = {5, 6, 7, 8};
  gemm<float>(scratch, no, no, 0, 2, 2, a, 2, b, 2, c, 2, false);
  gemm<float>(scratch, no, no, 2, 0, 2, a, 2, b, 2, c, 2, false);
  gemm<float>(scratch, no, no, 2, 2, 0, a, 2, b, 2, c, 2, true);
  EXPECT_EQ(c[0], 5);
  EXPECT_EQ(c[3], 8);
  gemm<float>(scratch, no, no, 2, 2, 0, a, 2, b, 2, c, 2, false);  // an empty sum
  for (const float x : c) EXPECT_EQ(x, 0);
}

TEST(Gemm, NotANumberStaysVisibleInItsRowAlone) {
  Arena arena, scratch;
  const Tensor a = random_tensor(arena, {37, 32}, DType::f32, 1),
               b = random_tensor(arena, {16, 32}, DType::f32, 2);
  const Tensor c = arena.tensor({37, 16}, DType::f32);
  a.as<float>()[35 * 32 + 4] = std::numeric_limits<float>::quiet_NaN();
  gemm(scratch, no, yes, a, b, c, false);
  for (std::int64_t i = 0; i < c.size(); ++i) EXPECT_EQ(std::isnan(c.as<float>()[i]), i / 16 == 35) << i;
}

TEST(Gemm, SaysWhichShapesDoNotFit) {
  Arena arena, scratch;
  const Tensor a = arena.zeros({3, 4}, DType::f32), b = arena.zeros({5, 4}, DType::f32),
               c = arena.zeros({3, 5}, DType::f32);
  EXPECT_EQ(error_of([&] { gemm(scratch, no, no, a, b, c, false); }),
            "gemm: [3, 4] times [5, 4] into [3, 5], which does not fit");
  EXPECT_EQ(error_of([&] { gemm(scratch, yes, yes, a, b, c, false); }),
            "gemm: [3, 4] transposed times [5, 4] transposed into [3, 5], which does not fit");
  EXPECT_EQ(error_of([&] {
              gemm(scratch, no, yes, a, b, arena.zeros({3, 5}, DType::f64), false);
            }),
            "a tensor of f32 was read as f64");
  EXPECT_EQ(error_of([&] {
              gemm(scratch, no, yes, a, b, arena.zeros({3, 5}, DType::i32), false);
            }),
            "arithmetic on i32 tensors, expected f32 or f64");
}

}  // namespace
}  // namespace polyhead::kernels
