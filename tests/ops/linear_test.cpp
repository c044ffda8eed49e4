#include "polyhead/ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::gelu,
                                      Activation::swish};

double value(Activation f, double z) {
  switch (f) {
    case Activation::none:
      return z;
    case Activation::relu:
      return z > 0 ? z : 0;
    case Activation::gelu:
      return z * 0.5 * std::erfc(-z / std::numbers::sqrt2);
    case Activation::swish:
      return z / (1 + std::exp(-z));
  }
  return 0;
}

double derivative(Activation f, double z) {
  const double s = 1 / (1 + std::exp(-z));
  switch (f) {
    case Activation::none:
      return 1;
    case Activation::relu:
      return z > 0;
    case Activation::gelu:
      return 0.5 * std::erfc(-z / std::numbers::sqrt2) +
             z * std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::swish:
      return s + z * s * (1 - s);
  }
  return 0;
}

/// The equations of linear.h as plain loops in double.
struct NaiveLinear {
  Activation f;
  struct Saved {};
  Shape shape(const Tensor& x, const Tensor& w, const Tensor& b) const { return Linear{f}.shape(x, w, b); }
  static double element(const Tensor& t, std::int64_t i) {
    return t.dtype == DType::f64 ? t.as<double>()[i] : static_cast<double>(t.as<float>()[i]);
  }
  static double before(const Tensor& x, const Tensor& w, const Tensor& b, std::int64_t r, std::int64_t o) {
    double z = b ? element(b, o) : 0;
    for (std::int64_t i = 0; i < x.cols(); ++i)
      z += element(x, r * x.cols() + i) * element(w, o * x.cols() + i);
    return z;
  }
  Saved forward(Exec&, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y) const {
    dispatch(y.dtype, [&]<class T>() {
      for (std::int64_t i = 0; i < y.size(); ++i)
        y.as<T>()[i] = static_cast<T>(value(f, before(x, w, b, i / y.cols(), i % y.cols())));
    });
    return {};
  }
  void backward(Exec&, const Saved&, const Tensor& dy, const Tensor& x, const Tensor& w, const Tensor& b,
                Grad dx, Grad dw, Grad db) const {
    const std::int64_t in = x.cols(), out = w.rows();
    dispatch(dy.dtype, [&]<class T>() {
      for (std::int64_t r = 0; r < x.rows(); ++r)
        for (std::int64_t o = 0; o < out; ++o) {
          const double g = element(dy, r * out + o) * derivative(f, before(x, w, b, r, o));
          if (db) db.as<T>()[o] += static_cast<T>(g);
          for (std::int64_t i = 0; i < in; ++i) {
            if (dx) dx.as<T>()[r * in + i] += static_cast<T>(g * element(w, o * in + i));
            if (dw) dw.as<T>()[o * in + i] += static_cast<T>(g * element(x, r * in + i));
          }
        }
    });
  }
};

std::vector<Tensor> inputs(Arena& arena, DType dtype, const Shape& x, std::int64_t out, bool bias = true) {
  return {random_tensor(arena, x, dtype, 1), random_tensor(arena, {out, x[-1]}, dtype, 2),
          bias ? random_tensor(arena, {out}, dtype, 3) : Tensor{}};
}

TEST(Linear, GradientsAgreeWithDifferences) {
  for (const Activation f : activations)
    for (const bool bias : {true, false}) {
      SCOPED_TRACE(static_cast<int>(f));
      Arena arena;
      check_gradients(function_of<3>(Linear{f}), inputs(arena, DType::f64, {5, 7}, 11, bias));
    }
}

TEST(Linear, AgreesWithPlainLoops) {
  for (const Activation f : activations)
    for (const auto& x : {Shape{1, 1}, {37, 24}, {3, 5, 16}, {2, 3, 4, 8}, {9}})
      for (const bool bias : {true, false}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(f) << " x " << x << " bias " << bias);
        Arena arena;
        expect_same(function_of<3>(Linear{f}), function_of<3>(NaiveLinear{f}),
                    inputs(arena, DType::f64, x, 19, bias), 1e-12);
        expect_same(function_of<3>(Linear{f}), function_of<3>(NaiveLinear{f}),
                    inputs(arena, DType::f32, x, 19, bias), 1e-5);
      }
}

TEST(Linear, AddsToTheGradientsThatAreThere) {
  Workspace w;
  const auto in = inputs(w.activations, DType::f64, {4, 3}, 2);
  const Linear op{Activation::relu};
  const Tensor y = w.activations.tensor({4, 2}, DType::f64),
               dy = random_tensor(w.activations, {4, 2}, DType::f64, 5);
  const auto saved = op.forward(w.exec, in[0], in[1], in[2], y);
  std::vector<Tensor> once, twice;
  for (const Tensor& t : in) {
    once.push_back(w.activations.zeros(t.shape, t.dtype));
    twice.push_back(w.activations.zeros(t.shape, t.dtype));
  }
  op.backward(w.exec, saved, dy, in[0], in[1], in[2], {once[0]}, {once[1]}, {once[2]});
  for (int i = 0; i < 2; ++i)
    op.backward(w.exec, saved, dy, in[0], in[1], in[2], {twice[0]}, {twice[1]}, {twice[2]});
  for (std::size_t k = 0; k < in.size(); ++k)
    for (std::int64_t i = 0; i < in[k].size(); ++i)
      EXPECT_NEAR(twice[k].as<double>()[i], 2 * once[k].as<double>()[i], 1e-15);
  // Gradients nobody wants are passed over, the others unchanged.
  const Tensor alone = w.activations.zeros(in[2].shape, in[2].dtype);
  op.backward(w.exec, saved, dy, in[0], in[1], in[2], {}, {}, {alone});
  EXPECT_EQ(values(alone), values(once[2]));
  EXPECT_EQ(w.scratch.mark(), 0u);
}

TEST(Linear, ARowHasTheSameBitsInEveryBatch) {
  for (const Activation f : activations) {
    Workspace w;
    const auto in = inputs(w.activations, DType::f32, {83, 40}, 50);
    const Tensor whole = w.activations.tensor({83, 50}, DType::f32);
    Linear{f}.forward(w.exec, in[0], in[1], in[2], whole);
    for (std::int64_t r = 0; r < 83; ++r) {
      const Tensor alone = w.activations.tensor({1, 50}, DType::f32);
      Linear{f}.forward(w.exec, in[0].slice_rows(r, 1), in[1], in[2], alone);
      ASSERT_EQ(values(alone), values(whole.slice_rows(r, 1))) << "row " << r;
    }
  }
}

TEST(Linear, BitsDoNotDependOnThreadsNorOnAddresses) {
  Arena arena;
  for (const Activation f : activations) {
    expect_thread_invariant(function_of<3>(Linear{f}), inputs(arena, DType::f32, {70, 32}, 48));
    expect_address_invariant(function_of<3>(Linear{f}), inputs(arena, DType::f32, {21, 32}, 50));
  }
}

TEST(Linear, SinglePrecisionFollowsDouble) {
  for (const Activation f : activations)
    expect_f32_follows_f64(function_of<3>(Linear{f}), {{70, 64}, {48, 64}, {48}}, 1e-5);
}

TEST(Linear, NoRowsGiveNoRows) {
  Arena arena;
  const Result r = run(function_of<3>(Linear{Activation::gelu}), inputs(arena, DType::f32, {0, 4}, 3));
  EXPECT_TRUE(r.y.empty());
  EXPECT_EQ(r.gradients[1], std::vector<double>(12, 0.0));
  EXPECT_EQ(r.gradients[2], std::vector<double>(3, 0.0));
}

TEST(Linear, SaysWhichShapesDoNotFit) {
  Arena a;
  const auto t = [&](const Shape& s) { return a.zeros(s, DType::f32); };
  EXPECT_EQ(error_of([&] {
              Linear{}.shape(t({5, 7}), t({3, 6}), {});
            }),
            "linear: weight [3, 6] for x [5, 7], expected [out, in] for [..., in]");
  EXPECT_EQ(error_of([&] {
              Linear{}.shape(t({5, 7}), t({7}), {});
            }),
            "linear: weight [7] for x [5, 7], expected [out, in] for [..., in]");
  EXPECT_EQ(error_of([&] {
              Linear{}.shape(t({}), t({3, 1}), {});
            }),
            "linear: weight [3, 1] for x [], expected [out, in] for [..., in]");
  EXPECT_EQ(error_of([&] {
              Linear{}.shape(t({5, 7}), t({3, 7}), t({7}));
            }),
            "linear: bias [7] for weight [3, 7], expected [3]");
}

}  // namespace
}  // namespace polyhead::ops
