#include "polyhead/ops/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

/// Layer normalisation step by step, in double, each step with its own derivative.
struct NaiveLayerNorm {
  double eps;
  struct Saved {};
  Shape shape(const Tensor& x, const Tensor&, const Tensor&) const { return x.shape; }
  template <class T>
  std::pair<double, double> moments(const T* x, std::int64_t d) const {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < d; ++i) mean += static_cast<double>(x[i]) / static_cast<double>(d);
    for (std::int64_t i = 0; i < d; ++i)
      variance += std::pow(static_cast<double>(x[i]) - mean, 2) / static_cast<double>(d);
    return {mean, variance};
  }
  Saved forward(Exec&, const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y) const {
    const std::int64_t d = x.cols();
    dispatch(x.dtype, [&]<class T>() {
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const auto [mean, variance] = moments(x.as<T>() + i / d * d, d);
        y.as<T>()[i] =
            static_cast<T>(static_cast<double>(gamma.as<T>()[i % d]) *
                               (static_cast<double>(x.as<T>()[i]) - mean) / std::sqrt(variance + eps) +
                           static_cast<double>(beta.as<T>()[i % d]));
      }
    });
    return {};
  }
  void backward(Exec&, const Saved&, const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor&,
                Grad dx, Grad dgamma, Grad dbeta) const {
    const std::int64_t d = x.cols();
    dispatch(x.dtype, [&]<class T>() {
      for (std::int64_t r = 0; r < x.rows(); ++r) {
        const T* row = x.as<T>() + r * d;
        const auto [mean, variance] = moments(row, d);
        const double rstd = 1 / std::sqrt(variance + eps), n = static_cast<double>(d);
        double dvariance = 0, dmean = 0;
        for (std::int64_t i = 0; i < d; ++i) {
          const double g = dy.as<T>()[r * d + i], centred = static_cast<double>(row[i]) - mean;
          dgamma.as<T>()[i] += static_cast<T>(g * centred * rstd);
          dbeta.as<T>()[i] += static_cast<T>(g);
          const double gh = g * static_cast<double>(gamma.as<T>()[i]);
          dvariance += gh * centred * -0.5 * rstd * rstd * rstd;
          dmean -= gh * rstd;
        }
        for (std::int64_t i = 0; i < d; ++i) {
          const double gh =
              static_cast<double>(dy.as<T>()[r * d + i]) * static_cast<double>(gamma.as<T>()[i]);
          dx.as<T>()[r * d + i] += static_cast<T>(
              gh * rstd + dvariance * 2 * (static_cast<double>(row[i]) - mean) / n + dmean / n);
        }
      }
    });
  }
};

std::vector<Tensor> inputs(Arena& arena, DType dtype, const Shape& x) {
  return {random_tensor(arena, x, dtype, 1), random_tensor(arena, {x[-1]}, dtype, 2),
          random_tensor(arena, {x[-1]}, dtype, 3)};
}

TEST(LayerNorm, GradientsAgreeWithDifferences) {
  Arena arena;
  check_gradients(function_of<3>(LayerNorm{}), inputs(arena, DType::f64, {5, 8}));
  check_gradients(function_of<3>(LayerNorm{1e-2}), inputs(arena, DType::f64, {2, 3, 5}));
}

TEST(LayerNorm, AgreesWithPlainLoops) {
  Arena arena;
  for (const auto& shape : {Shape{7}, {1, 1}, {6, 33}, {2, 3, 16}, {2, 2, 2, 50}, {3, 128}}) {
    SCOPED_TRACE(to_string(shape));
    expect_same(function_of<3>(LayerNorm{1e-3}), function_of<3>(NaiveLayerNorm{1e-3}),
                inputs(arena, DType::f64, shape), 1e-11);
    expect_same(function_of<3>(LayerNorm{1e-3}), function_of<3>(NaiveLayerNorm{1e-3}),
                inputs(arena, DType::f32, shape), 1e-4);
  }
}

TEST(LayerNorm, RowsHaveMeanZeroAndVarianceOne) {
  Arena arena;
  const auto in = inputs(arena, DType::f64, {4, 200});
  std::fill_n(in[1].as<double>(), 200, 1.0);
  std::fill_n(in[2].as<double>(), 200, 0.0);
  const Result r = run(function_of<3>(LayerNorm{0}), in);
  for (std::size_t row = 0; row < 4; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 200; ++i) {
      sum += r.y[row * 200 + i];
      squares += r.y[row * 200 + i] * r.y[row * 200 + i];
    }
    EXPECT_NEAR(sum, 0, 1e-11);
    EXPECT_NEAR(squares, 200, 1e-10);
  }
}

TEST(LayerNorm, AConstantRowGivesBeta) {
  Arena arena;
  const auto in = inputs(arena, DType::f32, {1, 16});
  std::fill_n(in[0].as<float>(), 16, 3.0F);
  EXPECT_EQ(run(function_of<3>(LayerNorm{}), in).y, values(in[2]));
}

TEST(LayerNorm, ALargeOffsetDoesNotDrownTheVariance) {
  Arena arena;
  const auto near = inputs(arena, DType::f32, {3, 64}), far = inputs(arena, DType::f32, {3, 64});
  for (std::int64_t i = 0; i < 3 * 64; ++i) {
    near[0].as<float>()[i] = std::round(256 * near[0].as<float>()[i]) / 256;
    far[0].as<float>()[i] = near[0].as<float>()[i] + 4096;
  }
  const Result a = run(function_of<3>(LayerNorm{}), near), b = run(function_of<3>(LayerNorm{}), far);
  for (std::size_t i = 0; i < a.y.size(); ++i) EXPECT_NEAR(a.y[i], b.y[i], 2e-3);
}

TEST(LayerNorm, BitsDoNotDependOnThreadsNorOnAddresses) {
  Arena arena;
  for (const std::int64_t d : {16, 77, 128}) {
    expect_thread_invariant(function_of<3>(LayerNorm{}), inputs(arena, DType::f32, {9, d}));
    expect_address_invariant(function_of<3>(LayerNorm{}), inputs(arena, DType::f32, {9, d}));
    expect_f32_follows_f64(function_of<3>(LayerNorm{}), {{9, d}, {d}, {d}}, 1e-4);
  }
}

TEST(LayerNorm, SaysWhatDoesNotFit) {
  Arena a;
  const auto t = [&](const Shape& s) { return a.zeros(s, DType::f32); };
  EXPECT_EQ(error_of([&] {
              LayerNorm{}.shape(t({5, 7}), t({6}), t({7}));
            }),
            "layer_norm: gamma [6] and beta [7] for x [5, 7], expected [7]");
  EXPECT_EQ(error_of([&] {
              LayerNorm{}.shape(t({5, 7}), t({7}), t({1, 7}));
            }),
            "layer_norm: gamma [7] and beta [1, 7] for x [5, 7], expected [7]");
  EXPECT_EQ(error_of([&] {
              LayerNorm{}.shape(t({5, 0}), t({0}), t({0}));
            }),
            "layer_norm: x [5, 0], expected at least one feature");
}

}  // namespace
}  // namespace polyhead::ops
