#include "polyhead/ops/elementwise.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

TEST(Sum, AddsEveryElementAndSpreadsItsGradient) {
  Arena arena;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& shape : {Shape{}, {1}, {0}, {37}, {5, 100}, {2, 3, 4, 5}}) {
      const Tensor x = random_tensor(arena, shape, dtype, 1);
      const Result r = run(function_of<1>(Sum{}), {x});
      double sum = 0;
      for (const double v : values(x)) sum += v;
      ASSERT_EQ(r.y.size(), 1u);
      EXPECT_NEAR(r.y[0], sum, dtype == DType::f32 ? 1e-5 : 1e-13);
      const double dy = values(random_tensor(arena, {1}, dtype, 99))[0];  // as run() has it
      EXPECT_EQ(r.gradients[0], std::vector<double>(static_cast<std::size_t>(shape.size()), dy));
    }
}

TEST(Mean, IsTheSumOverTheCount) {
  Arena arena;
  for (const auto& shape : {Shape{}, {1}, {37}, {5, 100}}) {
    const Tensor x = random_tensor(arena, shape, DType::f64, 1);
    const Result sum = run(function_of<1>(Sum{}), {x}), mean = run(function_of<1>(Mean{}), {x});
    const auto n = static_cast<double>(shape.size());
    EXPECT_EQ(mean.y[0], sum.y[0] / n);
    for (std::size_t i = 0; i < mean.gradients[0].size(); ++i)
      EXPECT_EQ(mean.gradients[0][i], sum.gradients[0][i] / n);
  }
  EXPECT_EQ(error_of([&] {
              Mean{}.shape(arena.zeros({3, 0}, DType::f32));
            }),
            "mean: x [3, 0], expected at least one element");
}

TEST(Elementwise, ScaleAddMul) {
  Arena arena;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor a = random_tensor(arena, {7, 13}, dtype, 1), b = random_tensor(arena, {7, 13}, dtype, 2);
    const auto p = values(a), q = values(b), dy = values(random_tensor(arena, {7, 13}, dtype, 99));
    const Result scale = run(function_of<1>(Scale{-1.5}), {a});
    const Result add = run(function_of<2>(Add{}), {a, b}), mul = run(function_of<2>(Mul{}), {a, b});
    EXPECT_EQ(add.gradients[0], dy);
    EXPECT_EQ(add.gradients[1], dy);
    for (std::size_t i = 0; i < p.size(); ++i) {
      EXPECT_NEAR(scale.y[i], -1.5 * p[i], 1e-6);
      EXPECT_NEAR(scale.gradients[0][i], -1.5 * dy[i], 1e-6);
      EXPECT_NEAR(add.y[i], p[i] + q[i], 1e-6);
      EXPECT_NEAR(mul.y[i], p[i] * q[i], 1e-6);
      EXPECT_NEAR(mul.gradients[0][i], dy[i] * q[i], 1e-6);
      EXPECT_NEAR(mul.gradients[1][i], dy[i] * p[i], 1e-6);
    }
  }
}

TEST(Elementwise, GradientsAgreeWithDifferences) {
  Arena arena;
  const Tensor a = random_tensor(arena, {4, 5}, DType::f64, 1),
               b = random_tensor(arena, {4, 5}, DType::f64, 2);
  check_gradients(function_of<1>(Sum{}), {a});
  check_gradients(function_of<1>(Mean{}), {a});
  check_gradients(function_of<1>(Scale{3}), {a});
  check_gradients(function_of<2>(Add{}), {a, b});
  check_gradients(function_of<2>(Mul{}), {a, b});
}

TEST(Elementwise, AValueUsedTwiceGetsBothGradients) {
  Arena arena;
  const Function square = [](Tape& tape, const std::vector<Var>& in) {
    return tape.apply(Mul{}, in[0], in[0]);
  };
  const Function twice = [](Tape& tape, const std::vector<Var>& in) {
    return tape.apply(Add{}, in[0], in[0]);
  };
  check_gradients(square, {random_tensor(arena, {3, 4}, DType::f64, 1)});
  check_gradients(twice, {random_tensor(arena, {3, 4}, DType::f64, 1)});
}

TEST(Elementwise, BitsDoNotDependOnThreadsNorOnAddresses) {
  Arena arena;
  const Tensor a = random_tensor(arena, {23, 45}, DType::f32, 1),
               b = random_tensor(arena, {23, 45}, DType::f32, 2);
  for (const Function& f : {function_of<1>(Sum{}), function_of<1>(Mean{}), function_of<1>(Scale{0.3})}) {
    expect_thread_invariant(f, {a});
    expect_address_invariant(f, {a});
    expect_f32_follows_f64(f, {{23, 45}}, 1e-5);
  }
  for (const Function& f : {function_of<2>(Add{}), function_of<2>(Mul{})}) {
    expect_thread_invariant(f, {a, b});
    expect_address_invariant(f, {a, b});
    expect_f32_follows_f64(f, {{23, 45}, {23, 45}}, 1e-6);
  }
}

TEST(Elementwise, SaysWhichShapesDiffer) {
  Arena a;
  const Tensor x = a.zeros({2, 3}, DType::f32), y = a.zeros({3, 2}, DType::f32);
  EXPECT_EQ(error_of([&] { Add{}.shape(x, y); }), "add: a [2, 3] and b [3, 2], expected the same shape");
  EXPECT_EQ(error_of([&] { Mul{}.shape(x, y); }), "mul: a [2, 3] and b [3, 2], expected the same shape");
  Workspace w;
  EXPECT_EQ(error_of([&] {
              Add{}.forward(w.exec, x, a.zeros({2, 3}, DType::f64), x);
            }),
            "a tensor of f64 was read as f32");
}

}  // namespace
}  // namespace polyhead::ops
