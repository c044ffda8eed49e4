#include "polyhead/ops/embedding.h"

#include <gtest/gtest.h>

#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

/// E and its ids as a product with one-hot rows.
std::vector<double> one_hot_product(const std::vector<std::int32_t>& id, const Tensor& table, double scale) {
  const auto e = values(table);
  const auto d = static_cast<std::size_t>(table.cols());
  std::vector<double> y(id.size() * d);
  for (std::size_t n = 0; n < id.size(); ++n)
    for (std::size_t v = 0; v < static_cast<std::size_t>(table.rows()); ++v)
      for (std::size_t i = 0; i < d; ++i)
        y[n * d + i] += (static_cast<std::int32_t>(v) == id[n] ? scale : 0) * e[v * d + i];
  return y;
}

TEST(Embedding, GradientsAgreeWithDifferences) {
  Arena arena;
  const Tensor weight = random_tensor(arena, {6, 5}, DType::f64, 1);
  check_gradients(function_of<1>(Embedding{ids(arena, {3, 0, 3, 5, 3}), 2.5}), {weight});
}

TEST(Embedding, PicksScaledRowsAndAddsTheirGradients) {
  Arena arena;
  const std::vector<std::int32_t> id{4, 1, 1, 0, 4, 4};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor weight = random_tensor(arena, {5, 19}, dtype, 1);
    const Result r = run(function_of<1>(Embedding{ids(arena, id), 3.0}), {weight});
    const auto y = one_hot_product(id, weight, 3.0);
    ASSERT_EQ(r.y.size(), y.size());
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(r.y[i], y[i], 1e-6);
    const auto dy = values(random_tensor(arena, {6, 19}, dtype, 99));  // as run() has it
    for (std::size_t v = 0; v < 5; ++v)
      for (std::size_t i = 0; i < 19; ++i) {
        double sum = 0;
        for (std::size_t n = 0; n < id.size(); ++n)
          if (id[n] == static_cast<std::int32_t>(v)) sum += 3.0 * dy[n * 19 + i];
        EXPECT_NEAR(r.gradients[0][v * 19 + i], sum, 1e-5);
      }
  }
}

TEST(Embedding, SinglePrecisionFollowsDouble) {
  Arena arena;
  expect_f32_follows_f64(function_of<1>(Embedding{ids(arena, {0, 1, 4, 4}), 4}), {{5, 16}}, 1e-5);
  expect_f32_follows_f64(function_of<2>(AddPositions{ids(arena, {0, 1, 1})}), {{3, 16}, {2, 16}}, 1e-5);
}

TEST(Embedding, BitsDoNotDependOnThreads) {
  Arena arena;
  expect_thread_invariant(function_of<1>(Embedding{ids(arena, {0, 1, 4, 4, 2, 0}), 4}),
                          {random_tensor(arena, {5, 33}, DType::f32, 1)});
}

TEST(Embedding, NoTokensGiveNoRows) {
  Arena arena;
  const Result r =
      run(function_of<1>(Embedding{ids(arena, {}), 1}), {random_tensor(arena, {5, 4}, DType::f32, 1)});
  EXPECT_TRUE(r.y.empty());
  EXPECT_EQ(r.gradients[0], std::vector<double>(20, 0.0));
}

TEST(Embedding, SaysWhatDoesNotFit) {
  Arena a;
  const Tensor weight = a.zeros({5, 4}, DType::f32);
  EXPECT_EQ(error_of([&] {
              Embedding{ids(a, {0, 5})}.shape(weight);
            }),
            "embedding: token id 5, expected 0 to 4");
  EXPECT_EQ(error_of([&] { Embedding{ids(a, {-1})}.shape(weight); }),
            "embedding: token id -1, expected 0 to 4");
  EXPECT_EQ(error_of([&] { Embedding{a.zeros({2}, DType::f32)}.shape(weight); }),
            "embedding: token ids f32[2], expected i32[N]");
  EXPECT_EQ(error_of([&] {
              Embedding{a.zeros({2, 2}, DType::i32)}.shape(weight);
            }),
            "embedding: token ids i32[2, 2], expected i32[N]");
  EXPECT_EQ(error_of([&] { Embedding{ids(a, {0})}.shape(a.zeros({5}, DType::f32)); }),
            "embedding: weight [5], expected [vocabulary, features]");
}

TEST(AddPositions, GradientsAgreeWithDifferences) {
  Arena arena;
  check_gradients(function_of<2>(AddPositions{ids(arena, {0, 1, 2, 0, 1})}),
                  {random_tensor(arena, {5, 6}, DType::f64, 1), random_tensor(arena, {4, 6}, DType::f64, 2)});
}

TEST(AddPositions, AddsTheRowOfEachPosition) {
  Arena arena;
  const std::vector<std::int32_t> at{0, 1, 2, 0, 2, 2};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = random_tensor(arena, {6, 21}, dtype, 1), table = random_tensor(arena, {3, 21}, dtype, 2);
    const Result r = run(function_of<2>(AddPositions{ids(arena, at)}), {x, table});
    const auto in = values(x), picked = one_hot_product(at, table, 1);
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(r.y[i], in[i] + picked[i], 1e-6);
    const auto dy = values(random_tensor(arena, {6, 21}, dtype, 99));
    EXPECT_EQ(r.gradients[0], dy);
    for (std::size_t i = 0; i < 21; ++i) {
      EXPECT_NEAR(r.gradients[1][i], dy[i] + dy[3 * 21 + i], 1e-6);
      EXPECT_NEAR(r.gradients[1][21 + i], dy[21 + i], 1e-6);
      EXPECT_NEAR(r.gradients[1][42 + i], dy[2 * 21 + i] + dy[4 * 21 + i] + dy[5 * 21 + i], 1e-6);
    }
  }
}

TEST(AddPositions, BitsDoNotDependOnThreads) {
  Arena arena;
  expect_thread_invariant(
      function_of<2>(AddPositions{ids(arena, {0, 1, 2, 0, 1})}),
      {random_tensor(arena, {5, 37}, DType::f32, 1), random_tensor(arena, {4, 37}, DType::f32, 2)});
}

TEST(AddPositions, SaysWhatDoesNotFit) {
  Arena a;
  const Tensor x = a.zeros({3, 4}, DType::f32), table = a.zeros({2, 4}, DType::f32);
  EXPECT_EQ(error_of([&] {
              AddPositions{ids(a, {0, 1, 2})}.shape(x, table);
            }),
            "add_positions: position 2, expected 0 to 1");
  EXPECT_EQ(error_of([&] {
              AddPositions{ids(a, {0, 1})}.shape(x, table);
            }),
            "add_positions: 2 positions for x [3, 4]");
  EXPECT_EQ(error_of([&] {
              AddPositions{ids(a, {0, 1, 1})}.shape(x, a.zeros({2, 5}, DType::f32));
            }),
            "add_positions: table [2, 5] for x [3, 4], expected [max_length, features] for [N, features]");
}

}  // namespace
}  // namespace polyhead::ops
