#include "polyhead/ops/hard_concrete.h"

#include <gtest/gtest.h>

#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

TEST(HardConcrete, GradientsAgreeWithFiniteDifferences) {
  Arena arena;
  const Tensor log_alpha = random_tensor(arena, {6}, DType::f64, 3);
  for (const bool training : {false, true})
    check_gradients(function_of<1>(HardConcrete{.site = 5}), {log_alpha}, training);
  expect_thread_invariant(function_of<1>(HardConcrete{.site = 5}), {log_alpha}, true);
}

TEST(HardConcrete, OutsideOfTrainingGatesAreThoseOfTheFormula) {
  Arena arena;
  const Tensor log_alpha = arena.tensor({4}, DType::f64);
  const double values_of[] = {-9, 0, 1, 9};
  std::copy(std::begin(values_of), std::end(values_of), log_alpha.as<double>());
  const Result result = run(function_of<1>(HardConcrete{}), {log_alpha});
  EXPECT_EQ(result.y[0], 0);
  EXPECT_NEAR(result.y[1], 0.5, 1e-12);
  EXPECT_NEAR(result.y[2], 1.2 / (1 + std::exp(-1)) - 0.1, 1e-12);
  EXPECT_EQ(result.y[3], 1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(HardConcrete::value(values_of[i]), result.y[i], 1e-12);
  EXPECT_EQ(result.gradients[0][0], 0);
  EXPECT_EQ(result.gradients[0][3], 0);
}

/// How often a gate is not 0 over many updates is the probability that the penalty counts.
TEST(HardConcrete, IsOpenAsOftenAsThePenaltySays) {
  for (const double log_alpha : {-2.0, 0.0, 1.5}) {
    int open = 0, all = 0;
    for (std::uint64_t update = 0; update < 400; ++update) {
      Workspace w;
      w.exec.training = true;
      w.exec.key = RngKey{update};
      const Tensor alphas = w.activations.tensor({10}, DType::f32),
                   y = w.activations.tensor({1, 10}, DType::f32);
      for (float& x : alphas.span<float>()) x = static_cast<float>(log_alpha);
      HardConcrete{.site = 1}.forward(w.exec, alphas, y);
      for (const float gate : y.span<float>()) open += gate > 0;
      all += 10;
    }
    EXPECT_NEAR(static_cast<double>(open) / all, HardConcrete::open_probability(log_alpha), 0.03)
        << log_alpha;
  }
  EXPECT_EQ(error_of([] {
              Arena arena;
              static_cast<void>(HardConcrete{}.shape(arena.tensor({2, 2}, DType::f32)));
            }),
            "hard concrete gates: log alpha [2, 2], expected [heads]");
}

}  // namespace
}  // namespace polyhead::ops
