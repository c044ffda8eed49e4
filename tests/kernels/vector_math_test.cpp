#include "polyhead/kernels/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace polyhead::kernels {
namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

template <class T>
class VectorMath : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMath, Types);

template <class T>
std::vector<T> exp_of(const std::vector<T>& x) {
  std::vector<T> y(x.size());
  exp(std::span<const T>(x), std::span<T>(y));
  return y;
}

/// Distance of y from the exact value in units of the last place of the nearest T.
template <class T>
double ulps(T y, long double exact) {
  const T nearest = static_cast<T>(exact);
  const T next = std::nextafter(nearest, infinity<T>);
  return static_cast<double>(std::abs(static_cast<long double>(y) - exact) /
                             (static_cast<long double>(next) - nearest));
}

template <class T>
std::vector<T> wave(std::size_t n) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(8 * std::sin(static_cast<double>(i) * 1.7));
  return x;
}

TYPED_TEST(VectorMath, ExpIsAccurateOverItsWholeRange) {
  using T = TypeParam;
  const double low = sizeof(T) == 4 ? -103.9 : -745.0, high = sizeof(T) == 4 ? 88.72 : 709.78;
  std::vector<T> x(400'003);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(low + (high - low) * static_cast<double>(i) / static_cast<double>(x.size() - 1));
  const std::vector<T> y = exp_of(x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, ulps(y[i], std::exp(static_cast<long double>(x[i]))));
  EXPECT_LE(worst, 1.2);
}

TYPED_TEST(VectorMath, ExpOfSpecialValues) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> y = exp_of<T>({-infinity<T>, infinity<T>, nan, -nan, 0, -T{0}, T{1000}, T{-1000}});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], infinity<T>);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], 1);
  EXPECT_EQ(y[5], 1);
  EXPECT_EQ(y[6], infinity<T>);
  EXPECT_EQ(y[7], 0);
}

TYPED_TEST(VectorMath, BitsDependOnTheValuesAlone) {
  using T = TypeParam;
  const std::vector<T> x = wave<T>(1009);
  std::vector<T> room(x.size() + 16);
  const T sum = exp_sum(std::span<const T>(x), T{8});
  for (std::size_t offset = 0; offset < 16; ++offset) {
    std::copy(x.begin(), x.end(), room.begin() + static_cast<std::ptrdiff_t>(offset));
    const std::span<T> row(room.data() + offset, x.size());
    EXPECT_EQ(exp_sum(std::span<const T>(row), T{8}), sum);
    EXPECT_EQ(exp_sum(std::span<const T>(row), T{8}, row), sum);
  }
}

TYPED_TEST(VectorMath, PaddingWithMinusInfinityChangesNoBit) {
  using T = TypeParam;
  for (std::size_t n = 1; n < 70; ++n) {
    std::vector<T> row = wave<T>(n), padded = row;
    padded.resize(96, -infinity<T>);
    EXPECT_EQ(softmax_row(std::span<T>(row)), softmax_row(std::span<T>(padded)));
    for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(padded[i], i < n ? row[i] : 0);
  }
}

TYPED_TEST(VectorMath, SumsAndMaximaOfEveryLength) {
  using T = TypeParam;
  EXPECT_EQ(max(std::span<const T>()), -infinity<T>);
  EXPECT_EQ(log_sum_exp(std::span<const T>()), -infinity<T>);
  for (std::size_t n = 1; n < 70; ++n) {
    const std::vector<T> x = wave<T>(n);
    double sum = 0;
    for (const T v : x) sum += std::exp(static_cast<double>(v));
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
    EXPECT_EQ(max(std::span<const T>(x)), *std::max_element(x.begin(), x.end()));
    EXPECT_NEAR(static_cast<double>(log_sum_exp(std::span<const T>(x))), std::log(sum), tolerance);
    std::vector<T> p = x;
    softmax_row(std::span<T>(p));
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(static_cast<double>(p[i]), std::exp(static_cast<double>(x[i])) / sum, tolerance);
  }
}

TYPED_TEST(VectorMath, SoftmaxOfRowsWithoutAFiniteElement) {
  using T = TypeParam;
  std::vector<T> row(21, -infinity<T>);
  EXPECT_EQ(softmax_row(std::span<T>(row)), -infinity<T>);
  EXPECT_EQ(row, std::vector<T>(21));
  row.assign(21, -infinity<T>);
  row[3] = std::numeric_limits<T>::quiet_NaN();
  softmax_row(std::span<T>(row));
  EXPECT_TRUE(std::isnan(row[3]) && std::isnan(row[4]));
}

TYPED_TEST(VectorMath, SoftmaxOfLargeValuesDoesNotOverflow) {
  using T = TypeParam;
  std::vector<T> row = {T{1000}, T{1000}, T{-1000}};
  softmax_row(std::span<T>(row));
  EXPECT_EQ(row, (std::vector<T>{T(0.5), T(0.5), T{0}}));
}

}  // namespace
}  // namespace polyhead::kernels
