#include "ops/activate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "polyhead/core/rng.h"

namespace polyhead::ops {
namespace {

constexpr Activation curved[] = {Activation::relu, Activation::gelu, Activation::swish};

std::vector<float> range() {
  std::vector<float> z;
  for (int i = -4000; i <= 4000; ++i) z.push_back(static_cast<float>(i) / 200);
  return z;
}

TEST(Activate, SinglePrecisionFollowsDouble) {
  const std::vector<float> z = range();
  const std::vector<double> exact(z.begin(), z.end());
  const std::vector<float> one(z.size(), 1);
  const std::vector<double> one_exact(z.size(), 1);
  for (const Activation f : curved) {
    std::vector<float> y(z.size()), g(z.size());
    std::vector<double> y_exact(z.size()), g_exact(z.size());
    const auto n = static_cast<std::int64_t>(z.size());
    activate(f, z.data(), y.data(), n);
    activate(f, exact.data(), y_exact.data(), n);
    activation_gradient(f, gradient_needs_input(f) ? z.data() : y.data(), one.data(), g.data(), n);
    activation_gradient(f, gradient_needs_input(f) ? exact.data() : y_exact.data(), one_exact.data(),
                        g_exact.data(), n);
    for (std::size_t i = 0; i < z.size(); ++i) {
      ASSERT_NEAR(y[i], y_exact[i], 4e-7 * std::max(1.0, std::abs(exact[i]))) << "at " << z[i];
      ASSERT_NEAR(g[i], g_exact[i], 1e-6) << "at " << z[i];
    }
  }
}

TEST(Activate, KnownValues) {
  const double z[] = {-1, 0, 1, 2};
  double y[4];
  activate(Activation::gelu, z, y, 4);
  EXPECT_NEAR(y[0], -0.15865525393145707, 1e-15);
  EXPECT_EQ(y[1], 0);
  EXPECT_NEAR(y[2], 0.8413447460685429, 1e-15);
  EXPECT_NEAR(y[3], 1.9544997361036416, 1e-15);
  activate(Activation::swish, z, y, 4);
  EXPECT_NEAR(y[0], -0.2689414213699951, 1e-15);
  EXPECT_EQ(y[1], 0);
  EXPECT_NEAR(y[3], 1.7615941559557649, 1e-15);
  activate(Activation::relu, z, y, 4);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[3], 2);
  const double slope[] = {3, 3, 3, 3};
  double g[4];
  activation_gradient(Activation::relu, y, slope, g, 4);
  EXPECT_EQ(g[0], 0);
  EXPECT_EQ(g[1], 0);  // at the kink, as PyTorch
  EXPECT_EQ(g[2], 3);
}

TEST(Activate, KnownSlopes) {
  const double z[] = {-1, 0, 1}, one[] = {1, 1, 1};
  double g[3];
  activation_gradient(Activation::gelu, z, one, g, 3);
  EXPECT_NEAR(g[0], -0.0833154705876863, 1e-15);
  EXPECT_NEAR(g[1], 0.5, 1e-15);
  EXPECT_NEAR(g[2], 1.0833154705876863, 1e-15);
  activation_gradient(Activation::swish, z, one, g, 3);
  EXPECT_NEAR(g[0], 0.07232948812851325, 1e-15);
  EXPECT_NEAR(g[1], 0.5, 1e-15);
  EXPECT_NEAR(g[2], 0.9276705118714868, 1e-15);
}

TEST(Activate, NotANumberAndInfinityStayVisible) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation f : curved) {
    const float z[] = {nan, inf, -300.0F, 300.0F};
    float y[4];
    activate(f, z, y, 4);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], inf);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 300.0F);
  }
}

TEST(Activate, BitsDependOnTheElementAlone) {
  // The same values at every address and at every place of a row.
  RandomStream random(RngKey{3});
  std::vector<float> z(100);
  for (float& x : z) x = static_cast<float>(8 * random.uniform() - 4);
  for (const Activation f : curved) {
    std::vector<float> y(100), dy(100, 0.7F), g(100);
    activate(f, z.data(), y.data(), 100);
    activation_gradient(f, z.data(), dy.data(), g.data(), 100);
    for (std::size_t shift = 1; shift <= 17; ++shift) {
      const std::size_t n = 100 - shift;
      std::vector<float> shifted(100), slope(100);
      activate(f, z.data() + shift, shifted.data() + shift / 2, static_cast<std::int64_t>(n));
      activation_gradient(f, z.data() + shift, dy.data(), slope.data() + shift / 2,
                          static_cast<std::int64_t>(n));
      EXPECT_EQ(std::memcmp(shifted.data() + shift / 2, y.data() + shift, n * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(slope.data() + shift / 2, g.data() + shift, n * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace polyhead::ops
