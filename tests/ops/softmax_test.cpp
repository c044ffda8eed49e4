#include "polyhead/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

/// Softmax with its whole Jacobian: ∂y_i/∂x_j = p_i(δ_ij − p_j), or δ_ij − p_j for log p.
struct NaiveSoftmax {
  bool log;
  struct Saved {};
  Shape shape(const Tensor& x) const { return x.shape; }
  template <class T>
  static std::vector<double> row(const Tensor& x, std::int64_t r) {
    std::vector<double> p(x.as<T>() + r * x.cols(), x.as<T>() + (r + 1) * x.cols());
    double sum = 0;
    for (double& v : p) sum += v = std::exp(v);
    for (double& v : p) v /= sum;
    return p;
  }
  Saved forward(Exec&, const Tensor& x, const Tensor& y) const {
    dispatch(x.dtype, [&]<class T>() {
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const double p = row<T>(x, i / x.cols())[static_cast<std::size_t>(i % x.cols())];
        y.as<T>()[i] = static_cast<T>(log ? std::log(p) : p);
      }
    });
    return {};
  }
  void backward(Exec&, const Saved&, const Tensor& dy, const Tensor& x, Grad dx) const {
    const std::int64_t n = x.cols();
    dispatch(x.dtype, [&]<class T>() {
      for (std::int64_t r = 0; r < x.rows(); ++r) {
        const auto p = row<T>(x, r);
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            const double jacobian = (i == j) - p[static_cast<std::size_t>(j)];
            dx.as<T>()[r * n + j] += static_cast<T>(static_cast<double>(dy.as<T>()[r * n + i]) * jacobian *
                                                    (log ? 1 : p[static_cast<std::size_t>(i)]));
          }
      }
    });
  }
};

TEST(Softmax, GradientsAgreeWithDifferences) {
  Arena arena;
  for (const bool log : {false, true}) {
    check_gradients(function_of<1>(Softmax{log}), {random_tensor(arena, {4, 7}, DType::f64, 1)});
    check_gradients(function_of<1>(Softmax{log}), {random_tensor(arena, {2, 2, 3}, DType::f64, 1)});
  }
}

TEST(Softmax, AgreesWithTheWholeJacobian) {
  Arena arena;
  for (const bool log : {false, true})
    for (const auto& shape : {Shape{1}, {5}, {3, 1}, {6, 33}, {2, 3, 16}, {2, 2, 2, 50}}) {
      expect_same(function_of<1>(Softmax{log}), function_of<1>(NaiveSoftmax{log}),
                  {random_tensor(arena, shape, DType::f64, 1)}, 1e-12);
      expect_same(function_of<1>(Softmax{log}), function_of<1>(NaiveSoftmax{log}),
                  {random_tensor(arena, shape, DType::f32, 1)}, 1e-5);
    }
}

TEST(Softmax, LargeLogitsStayFinite) {
  Arena arena;
  const Tensor x = arena.tensor({2, 3}, DType::f32);
  const float inf = std::numeric_limits<float>::infinity();
  const float logits[] = {1000, 999, -1000, -inf, 2, 2};
  std::copy_n(logits, 6, x.as<float>());
  const Result p = run(function_of<1>(Softmax{}), {x}), l = run(function_of<1>(Softmax{true}), {x});
  EXPECT_NEAR(p.y[0], 0.7310585786, 1e-6);
  EXPECT_EQ(p.y[2], 0);
  EXPECT_EQ(p.y[3], 0);
  EXPECT_EQ(p.y[4], 0.5);
  EXPECT_NEAR(l.y[1], -1.3132616875, 1e-4);
  EXPECT_NEAR(l.y[2], -2000.3132617, 1e-3);
  EXPECT_EQ(l.y[3], -inf);
}

TEST(Softmax, NotANumberStaysVisible) {
  Arena arena;
  const Tensor x = random_tensor(arena, {2, 20}, DType::f32, 1);
  x.as<float>()[23] = std::numeric_limits<float>::quiet_NaN();
  for (const bool log : {false, true}) {
    const Result r = run(function_of<1>(Softmax{log}), {x});
    for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(r.y[i]), i >= 20);
  }
}

TEST(Softmax, BitsDoNotDependOnThreadsNorOnAddresses) {
  Arena arena;
  const std::vector<Tensor> x{random_tensor(arena, {9, 77}, DType::f32, 1)};
  for (const bool log : {false, true}) {
    expect_thread_invariant(function_of<1>(Softmax{log}), x);
    expect_address_invariant(function_of<1>(Softmax{log}), x);
    expect_f32_follows_f64(function_of<1>(Softmax{log}), {{9, 77}}, 1e-5);
  }
}

TEST(Softmax, SaysWhatDoesNotFit) {
  Arena a;
  EXPECT_EQ(error_of([&] {
              Softmax{}.shape(a.zeros({3, 0}, DType::f32));
            }),
            "softmax: x [3, 0], expected at least one element a row");
  EXPECT_EQ(error_of([&] { Softmax{}.shape(a.zeros({}, DType::f32)); }),
            "softmax: x [], expected at least one element a row");
}

}  // namespace
}  // namespace polyhead::ops
