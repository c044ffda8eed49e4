#include "polyhead/ops/head_cosine.h"

#include <limits>

#include "support/check_op.h"
#include "support/head_cosine.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

TEST(HeadCosine, IsTheMeanOverPairsOfHeadsSummedOverRows) {
  Arena arena;
  for (const std::int64_t heads : {1, 2, 5}) {
    const Tensor x = random_tensor(arena, {7, heads * 6}, DType::f64, 3);
    const Function f = function_of<1>(HeadCosine{heads});
    EXPECT_NEAR(run(f, {x}).y[0], head_cosine(x, heads), 1e-12);
    check_gradients(f, {x});
  }
}

TEST(HeadCosine, OneHeadOnlyAgreesWithItself) {
  Arena arena;
  const Result result = run(function_of<1>(HeadCosine{1}), {random_tensor(arena, {9, 5}, DType::f64, 4)});
  EXPECT_NEAR(result.y[0], 9, 1e-12);
  for (const double g : result.gradients[0]) EXPECT_NEAR(g, 0, 1e-14);
}

TEST(HeadCosine, OppositeHeadsCancelAndEqualOnesDoNot) {
  Arena arena;
  const Tensor x = arena.tensor({3, 4}, DType::f64);
  const double rows[] = {1, 2, -3, -6, 1, 2, 4, 8, 1, 0, 0, 5};
  std::copy(std::begin(rows), std::end(rows), x.as<double>());
  EXPECT_NEAR(run(function_of<1>(HeadCosine{2}), {x}).y[0], 0 + 1 + 0.5, 1e-12);
}

TEST(HeadCosine, AHeadWithoutADirectionHasNoGradient) {
  Arena arena;
  const Tensor x = random_tensor(arena, {2, 6}, DType::f64, 5);
  std::fill_n(x.as<double>() + 2, 2, 0.0);
  const Result result = run(function_of<1>(HeadCosine{3}), {x});
  EXPECT_EQ(result.gradients[0][2], 0);
  EXPECT_EQ(result.gradients[0][3], 0);
  EXPECT_GT(std::abs(result.gradients[0][0]), 0);
  EXPECT_TRUE(std::isfinite(result.y[0]));
}

TEST(HeadCosine, NaNAndOverflowStayVisible) {
  Arena arena;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 1e30F}) {
    const Tensor x = random_tensor(arena, {3, 8}, DType::f32, 6);
    x.as<float>()[5] = bad;
    EXPECT_TRUE(std::isnan(run(function_of<1>(HeadCosine{2}), {x}).y[0])) << bad;
  }
}

TEST(HeadCosine, HasTheSameBitsOnEveryThreadAndAtEveryAddress) {
  Arena arena;
  const Tensor x = random_tensor(arena, {11, 4 * 13}, DType::f32, 7);
  const Function f = function_of<1>(HeadCosine{4});
  expect_thread_invariant(f, {x});
  expect_address_invariant(f, {x});
  expect_f32_follows_f64(f, {{11, 4 * 13}}, 1e-5);
}

TEST(HeadCosine, RefusesColumnsThatAreNotThoseOfItsHeads) {
  Arena arena;
  EXPECT_EQ(error_of([&] {
              (void)HeadCosine{4}.shape(arena.tensor({2, 6}, DType::f32));
            }),
            "cosine of heads: x [2, 6], expected a matrix with columns for 4 heads");
  EXPECT_EQ(error_of([&] {
              (void)HeadCosine{0}.shape(arena.tensor({2, 6}, DType::f32));
            }),
            "cosine of heads: x [2, 6], expected a matrix with columns for 0 heads");
  EXPECT_EQ(error_of([&] { (void)HeadCosine{2}.shape(arena.tensor({6}, DType::f32)); }),
            "cosine of heads: x [6], expected a matrix with columns for 2 heads");
}

}  // namespace
}  // namespace polyhead::ops
