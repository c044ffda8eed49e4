#include "polyhead/ops/half_precision.h"

#include <gtest/gtest.h>

#include <cmath>

#include "polyhead/autograd/tape.h"
#include "polyhead/kernels/bf16.h"
#include "polyhead/ops/cross_entropy.h"
#include "polyhead/ops/linear.h"
#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

/// The f32 values that are left of x after rounding to bf16.
Tensor rounded(Arena& arena, const Tensor& x) {
  const Tensor y = arena.tensor(x.shape, DType::f32);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    BFloat16 half;
    kernels::to_bf16({x.as<float>() + i, 1}, {&half, 1});
    y.as<float>()[i] = kernels::to_float(half);
  }
  return y;
}

struct Outcome {
  std::vector<double> y, dx, dw;
};

/// y = op(x, w, bias), and the gradients under a given ∂y.
template <class Op>
Outcome run_op(const Op& op, HalfPrecision* half, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& dy) {
  Arena activations, scratch;
  Exec exec{.activations = activations, .scratch = scratch, .key = RngKey{1}, .training = true, .half = half};
  Tape tape(exec, true);
  const Tensor dw = activations.zeros(w.shape, DType::f32), dx = activations.zeros(x.shape, DType::f32);
  const Var y = tape.apply(op, tape.leaf(x, dx), tape.leaf(w, dw), tape.leaf(bias));
  tape.backward(y, dy);
  EXPECT_EQ(scratch.mark(), 0u);
  return {values(y.value()), values(dx), values(dw)};
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(b[i]))) << i;
}

class HalfPrecisionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::has_bf16()) GTEST_SKIP() << "this machine has no products of bf16";
  }

  /// Weights as a slab of parameters with its copy, w at an offset.
  HalfPrecision slab(Arena& arena, const Shape& shape, Tensor& w) {
    const std::int64_t offset = 32;
    const Tensor all = random_tensor(arena, {offset + shape.size()}, DType::f32, 2);
    w = {all.as<float>() + offset, shape, DType::f32};
    const Tensor copies = arena.tensor(all.shape, DType::bf16);
    kernels::to_bf16(all.span<float>(), copies.span<BFloat16>());
    return {all, copies};
  }
};

TEST_F(HalfPrecisionTest, FindsTheCopyOfAParameterAndOfNothingElse) {
  Arena arena;
  Tensor w;
  HalfPrecision half = slab(arena, {3, 4}, w);
  const Tensor copy = half.copy_of(w);
  EXPECT_EQ(copy.shape, (Shape{3, 4}));
  EXPECT_EQ(copy.as<BFloat16>() - half.copies.as<BFloat16>(), 32);
  EXPECT_FALSE(half.copy_of(arena.zeros({3, 4}, DType::f32)));
}

TEST_F(HalfPrecisionTest, LinearIsThatOfRoundedOperandsForwardAndBackward) {
  Arena arena;
  Tensor w;
  HalfPrecision half = slab(arena, {24, 40}, w);
  const Tensor x = random_tensor(arena, {70, 40}, DType::f32, 1),
               bias = random_tensor(arena, {24}, DType::f32, 3),
               dy = random_tensor(arena, {70, 24}, DType::f32, 4);
  const Outcome got = run_op(Linear{}, &half, x, w, bias, dy);
  const Outcome oracle =
      run_op(Linear{}, nullptr, rounded(arena, x), rounded(arena, w), bias, rounded(arena, dy));
  expect_near(got.y, oracle.y, 1e-5);
  expect_near(got.dx, oracle.dx, 1e-5);
  expect_near(got.dw, oracle.dw, 1e-5);
  EXPECT_NE(got.y, run_op(Linear{}, nullptr, x, w, bias, dy).y);
}

TEST_F(HalfPrecisionTest, CrossEntropyRoundsOperandsOnly) {
  Arena arena;
  Tensor w;
  HalfPrecision half = slab(arena, {50, 16}, w);
  const Tensor x = random_tensor(arena, {300, 16}, DType::f32, 1),
               bias = random_tensor(arena, {50}, DType::f32, 3);
  std::vector<std::int32_t> targets;
  for (int i = 0; i < 300; ++i) targets.push_back(i * 7 % 50);
  const Tensor dy = arena.tensor({1}, DType::f32);
  *dy.as<float>() = 1;
  const ProjectedCrossEntropy op{.targets = ids(arena, targets), .label_smoothing = 0.1, .gradients = true};
  const Outcome got = run_op(op, &half, x, w, bias, dy);
  const Outcome oracle = run_op(op, nullptr, rounded(arena, x), rounded(arena, w), bias, dy);
  expect_near(got.y, oracle.y, 1e-5);
  // ∂z is rounded too: each element by at most half a unit in the last of its 8 places.
  EXPECT_LT(distance(got.dx, oracle.dx), norm(oracle.dx) / 512);
  EXPECT_LT(distance(got.dw, oracle.dw), norm(oracle.dw) / 512);
  EXPECT_NE(got.dx, oracle.dx);
}

TEST_F(HalfPrecisionTest, RoundsAnOperandOnceForAllThatUseIt) {
  Arena arena, activations, scratch;
  Tensor w;
  HalfPrecision half = slab(arena, {24, 40}, w);
  Exec exec{
      .activations = activations, .scratch = scratch, .key = RngKey{1}, .training = true, .half = &half};
  const auto project = [&](const Tensor& x) {
    const Tensor y = scratch.tensor({70, 24}, DType::f32);
    return std::pair{Linear{}.forward(exec, x, w, {}, y).x.data, values(y)};
  };
  const Arena::Mark mark = activations.mark();
  const Tensor first = random_tensor(activations, {70, 40}, DType::f32, 1);
  const auto query = project(first), key = project(first);
  EXPECT_EQ(query, key);
  // The memory of an operand that is gone may hold another one.
  activations.rewind(mark);
  const Tensor second = random_tensor(activations, {70, 40}, DType::f32, 2);
  ASSERT_EQ(second.data, first.data);
  const auto other = project(second);
  EXPECT_NE(other.second, query.second);
  expect_near(
      other.second,
      run_op(Linear{}, &half, second, w, {nullptr, {}, DType::f32}, scratch.zeros({70, 24}, DType::f32)).y,
      0);
}

TEST_F(HalfPrecisionTest, LeavesF64Alone) {
  Arena arena;
  Tensor w;
  HalfPrecision half = slab(arena, {3, 4}, w);
  const Tensor x = random_tensor(arena, {5, 4}, DType::f64, 1),
               weight = random_tensor(arena, {3, 4}, DType::f64, 2), y = arena.tensor({5, 3}, DType::f64),
               expected = arena.tensor({5, 3}, DType::f64);
  Arena activations, scratch;
  Exec plain{.activations = activations, .scratch = scratch, .key = RngKey{1}, .training = false};
  Exec mixed = plain;
  mixed.half = &half;
  Linear{}.forward(plain, x, weight, {}, expected);
  Linear{}.forward(mixed, x, weight, {}, y);
  EXPECT_EQ(values(y), values(expected));
}

}  // namespace
}  // namespace polyhead::ops
