#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "polyhead/ops/attention.h"
#include "polyhead/ops/cross_entropy.h"
#include "polyhead/ops/layer_norm.h"
#include "polyhead/ops/linear.h"
#include "polyhead/ops/softmax.h"
#include "support/check_op.h"

/// Numbers at the ends of f32: what cannot be computed shows as NaN or infinity, and all else is right.
namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

constexpr float infinite = std::numeric_limits<float>::infinity(),
                not_a_number = std::numeric_limits<float>::quiet_NaN(),
                largest = std::numeric_limits<float>::max(),
                smallest = std::numeric_limits<float>::denorm_min();

Tensor filled(Arena& arena, const Shape& shape, const std::vector<float>& values) {
  const Tensor t = arena.tensor(shape, DType::f32);
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.as<float>()[i] = values[static_cast<std::size_t>(i) % values.size()];
  return t;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}
bool none_finite(const std::vector<double>& values) {
  return std::none_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

TEST(Extremes, SoftmaxOfTheLargestAndTheSmallest) {
  Arena arena;
  const Tensor x = filled(
      arena, {3, 4},
      {largest, -largest, 0, largest, smallest, 0, -smallest, smallest, -infinite, 1, -infinite, -infinite});
  const Result p = run(function_of<1>(Softmax{}), {x}), log = run(function_of<1>(Softmax{true}), {x});
  EXPECT_EQ(p.y, (std::vector<double>{0.5, 0, 0, 0.5, 0.25, 0.25, 0.25, 0.25, 0, 1, 0, 0}));
  EXPECT_TRUE(all_finite(p.gradients[0]));
  EXPECT_EQ(log.y[9], 0);
  EXPECT_EQ(log.y[1], -infinite) << "below all f32";
  EXPECT_NEAR(log.y[4], std::log(0.25), 1e-6);
}

TEST(Extremes, ASoftmaxThatIsNotDefinedIsNotANumber) {
  Arena arena;
  for (const std::vector<float>& row :
       {std::vector<float>{-infinite}, {infinite, 0}, {infinite}, {not_a_number, 1}})
    for (const bool log : {false, true})
      for (const std::int64_t size : {2, 16, 33})
        EXPECT_TRUE(none_finite(run(function_of<1>(Softmax{log}), {filled(arena, {1, size}, row)}).y))
            << row[0] << ", " << size;
}

Result layer_norm_of(Arena& arena, std::int64_t features, const std::vector<float>& row) {
  return run(function_of<3>(LayerNorm{}), {filled(arena, {1, features}, row), filled(arena, {features}, {1}),
                                           filled(arena, {features}, {0.5})});
}

TEST(Extremes, LayerNormOfConstantAndTinyRowsIsBeta) {
  Arena arena;
  // Of numbers whose sums are exact; of others the mean is off by a rounding, which may be all there is of a variance.
  for (const float x : {0.0F, smallest, -0x1p-120F, 1.0F, 0x3p13F, 0x1p60F, -0x5p90F})
    for (const std::int64_t features : {1, 16, 64}) {
      const Result r = layer_norm_of(arena, features, {x});
      EXPECT_EQ(r.y, std::vector<double>(static_cast<std::size_t>(features), 0.5)) << x << ", " << features;
      for (const auto& gradient : r.gradients) EXPECT_TRUE(all_finite(gradient)) << x << ", " << features;
    }
  for (const double y : layer_norm_of(arena, 16, {1e-30F, -1e-30F}).y) EXPECT_NEAR(y, 0.5, 1e-20);
  for (const float x : {0.1F, 12345.678F, -1e18F})
    for (const double y : layer_norm_of(arena, 64, {x}).y) EXPECT_NEAR(y, 0.5, 1.001) << x;
}

TEST(Extremes, ALayerNormWhoseVarianceOverflowsIsNotBeta) {
  Arena arena;
  for (const float x : {1e20F, 1e30F, largest, infinite, not_a_number})
    for (const std::int64_t features : {2, 16, 50}) {
      EXPECT_TRUE(none_finite(layer_norm_of(arena, features, {x, -x}).y)) << x << ", " << features;
      EXPECT_FALSE(all_finite(layer_norm_of(arena, features, {x, 0}).y)) << x << ", " << features;
    }
  const Result large = layer_norm_of(arena, 16, {1e18F, -1e18F});
  EXPECT_NEAR(large.y[0], 1.5, 1e-6);
  EXPECT_NEAR(large.y[1], -0.5, 1e-6);
}

Result cross_entropy_of(Arena& arena, float x, const std::vector<float>& weights, std::int32_t target,
                        double smoothing) {
  const auto words = static_cast<std::int64_t>(weights.size());
  ProjectedCrossEntropy op{.targets = ids(arena, {target}), .label_smoothing = smoothing, .gradients = true};
  return run(function_of<3>(op), {filled(arena, {1, 1}, {x}), filled(arena, {words, 1}, weights), Tensor{}});
}

TEST(Extremes, CrossEntropyOfLogitsFarApart) {
  Arena arena;
  const std::vector<float> weights{largest, -largest, 0, 1};
  const Result sure = cross_entropy_of(arena, 1, weights, 0, 0);
  EXPECT_EQ(sure.y[0], 0);
  EXPECT_TRUE(all_finite(sure.gradients[1]));
  EXPECT_EQ(cross_entropy_of(arena, 1, weights, 1, 0).y[0], infinite) << "above all f32";
  EXPECT_NEAR(cross_entropy_of(arena, 1, weights, 3, 0).y[0], largest, largest * 1e-6);
  EXPECT_FALSE(std::isfinite(cross_entropy_of(arena, 10, weights, 0, 0).y[0])) << "a logit overflows";
  EXPECT_NEAR(cross_entropy_of(arena, smallest, weights, 2, 0).y[0], std::log(4), 1e-6);
}

TEST(Extremes, ALossOfWhatIsNotFiniteIsNotFinite) {
  Arena arena;
  for (const float bad : {infinite, -infinite, not_a_number})
    for (const std::int32_t target : {0, 1})
      for (const double smoothing : {0.0, 0.1}) {
        if (bad == -infinite && target == 1 && smoothing == 0)
          continue;  // a word of probability 0 is no error
        EXPECT_FALSE(std::isfinite(cross_entropy_of(arena, 1, {bad, 1, 2}, target, smoothing).y[0]))
            << bad << target;
      }
}

/// One head of `keys` keys, all queries, keys and values of one number each.
Result attention_of(Arena& arena, std::int64_t queries, std::int64_t keys, float q,
                    const std::vector<float>& k, const std::vector<float>& v, const Tensor& mask = {},
                    bool causal = false) {
  std::vector<Segment> of_queries{{0, static_cast<std::int32_t>(queries)}},
      of_keys{{0, static_cast<std::int32_t>(keys)}};
  MultiHeadAttention op;
  op.query_segments = {of_queries, 0};
  op.key_segments = {of_keys, 0};
  op.mask = mask;
  op.causal = causal;
  return run(function_of<5>(op),
             {filled(arena, {queries, 4}, {q}), filled(arena, {std::max<std::int64_t>(keys, 1), 4}, k),
              filled(arena, {std::max<std::int64_t>(keys, 1), 4}, v), Tensor{}, Tensor{}});
}

constexpr std::int64_t kinds_of_keys[] = {1, 17, 256, 300};  // short rows, and long ones in blocks

TEST(Extremes, AttentionThatSeesNothingIsZero) {
  Arena arena;
  for (const std::int64_t keys : kinds_of_keys) {
    const Tensor mask = filled(arena, {3, keys}, {-infinite});
    const Result masked = attention_of(arena, 3, keys, 1, {2}, {3}, mask);
    EXPECT_EQ(masked.y, std::vector<double>(12, 0)) << keys;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(norm(masked.gradients[i]), 0) << keys;
    const Result causal = attention_of(arena, keys + 2, keys, 1, {2}, {3}, {}, true);
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_EQ(causal.y[i], 0) << "the first two queries come before every key";
    EXPECT_NEAR(causal.y[8], 3, 1e-6);
  }
  const Result empty = attention_of(arena, 3, 0, 1, {2}, {not_a_number});
  EXPECT_EQ(empty.y, std::vector<double>(12, 0));
  EXPECT_EQ(norm(empty.gradients[0]), 0);
}

TEST(Extremes, AttentionToScoresFarApartIsOfTheLargest) {
  Arena arena;
  for (const std::int64_t keys : kinds_of_keys) {
    std::vector<float> k(static_cast<std::size_t>(4 * keys), -1e18F), v(k.size(), 1e30F);
    std::fill_n(k.begin(), 4, 1e18F);
    std::fill_n(v.begin(), 4, 7.0F);
    const Result r = attention_of(arena, 5, keys, 1e18F, k, v);
    for (const double y : r.y) EXPECT_NEAR(y, 7, 1e-5) << keys;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(all_finite(r.gradients[i])) << keys;
    for (const double y : attention_of(arena, 5, keys, smallest, {smallest}, {1}).y)
      EXPECT_NEAR(y, 1, 1e-6) << keys;
  }
}

TEST(Extremes, AttentionWhoseScoresOverflowIsNotANumber) {
  Arena arena;
  for (const std::int64_t keys : kinds_of_keys)
    for (const std::int64_t queries : {1, 5})  // products by rows, and by transposed blocks
      for (const float k : {largest, -largest, infinite, -infinite, not_a_number})
        for (const bool masked : {false, true}) {
          const Tensor mask = masked ? filled(arena, {queries, keys}, {0}) : Tensor{};
          EXPECT_TRUE(none_finite(attention_of(arena, queries, keys, 1e10F, {k}, {1}, mask).y))
              << keys << ", " << k;
        }
}

TEST(Extremes, WhatOverflowsInALinearLayerIsInfinite) {
  Arena arena;
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::swish}) {
    const auto linear = function_of<3>(Linear{activation});
    const auto of = [&](float x, float w) {
      return run(linear, {filled(arena, {2, 33}, {x}), filled(arena, {5, 33}, {w}), Tensor{}}).y;
    };
    EXPECT_TRUE(none_finite(of(largest, 2))) << static_cast<int>(activation);
    EXPECT_TRUE(none_finite(of(not_a_number, 1))) << static_cast<int>(activation);
    EXPECT_TRUE(all_finite(of(1e30F, 1e6F))) << static_cast<int>(activation);
    EXPECT_TRUE(all_finite(of(smallest, 0.5F))) << static_cast<int>(activation);
    for (const double y : of(-1e30F, 1e6F))
      EXPECT_TRUE(activation == Activation::none ? y < -1e37 : y == 0) << y;
  }
}

}  // namespace
}  // namespace polyhead::ops
