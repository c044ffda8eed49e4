#include "polyhead/train/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "polyhead/config/yaml.h"
#include "support/check_op.h"

namespace polyhead::train {
namespace {

using polyhead::testing::error_of;
using polyhead::testing::random_tensor;
using polyhead::testing::values;

/// Slabs of random parameters, gradients and moments.
struct Slabs {
  Arena arena;
  AdamState state;
  Slabs(std::int64_t size, DType dtype)
      : state{random_tensor(arena, {size}, dtype, 1), random_tensor(arena, {size}, dtype, 2),
              arena.zeros({size}, dtype), arena.zeros({size}, dtype)} {}
};

/// The equations of the two papers for one parameter, in double, without the rearrangements of the fused
/// pass.
struct ScalarAdam {
  double p, m = 0, v = 0;
  void step(const AdamConfig& c, double g, int t, double learning_rate, bool decayed) {
    const double decay = decayed ? c.weight_decay : 0;
    if (c.optimizer == OptimizerKind::adam) g += decay * p;
    if (c.optimizer == OptimizerKind::adamw) p -= learning_rate * decay * p;
    m = c.beta1 * m + (1 - c.beta1) * g;
    v = c.beta2 * v + (1 - c.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(c.beta1, t)), v_hat = v / (1 - std::pow(c.beta2, t));
    p -= learning_rate * m_hat / (std::sqrt(v_hat) + c.eps);
  }
};

AdamConfig config(OptimizerKind kind, double weight_decay) {
  AdamConfig c;
  c.optimizer = kind;
  c.weight_decay = weight_decay;
  return c;
}

TEST(AdamTest, EqualsPyTorch) {
  // import torch; torch.set_default_dtype(torch.float64)
  // for make in torch.optim.Adam, torch.optim.AdamW:
  //     p = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
  //     optimizer = make([p], lr=0.1, betas=(0.9, beta2), eps=1e-9, weight_decay=0.01)
  //     for t in range(1, 11):
  //         p.grad = torch.tensor([t, -2.0, 1 / t])
  //         optimizer.step()
  //     print(p.tolist(), optimizer.state[p]["exp_avg_sq"].tolist())
  struct Case {
    OptimizerKind kind;
    double beta2;
    std::vector<double> parameters, squares;
  };
  const Case cases[] = {
      {OptimizerKind::adam,
       0.98,
       {-0.4735279117821924, -0.00013101674394867813, 1.2070486857771676},
       {7.3778966373174715, 0.7356182214861082, 0.028196151116475315}},
      {OptimizerKind::adamw,
       0.98,
       {-0.4739693817673944, 0.00546709831767489, 1.2011727736204583},
       {7.3798137885100425, 0.731708772449813, 0.02632706488488885}},
      {OptimizerKind::adam,
       0.999,
       {-0.4847681131454311, -0.0001608971854838298, 1.2184877292308958},
       {0.38408191298996036, 0.040039558923503, 0.0016438522840627487}},
      {OptimizerKind::adamw,
       0.999,
       {-0.4851883416320227, 0.005467098317673141, 1.2126297676218984},
       {0.38417625261512167, 0.03982047916100719, 0.001537245832936338}},
  };
  const std::vector<DecayRange> ranges{{0, 3, true}};
  for (const DType dtype : {DType::f64, DType::f32})
    for (const Case& c : cases) {
      Slabs slabs(3, dtype);
      const auto set = [&](const Tensor& tensor, const std::vector<double>& numbers) {
        dispatch(dtype, [&]<class T>() {
          std::transform(numbers.begin(), numbers.end(), tensor.as<T>(),
                         [](double x) { return static_cast<T>(x); });
        });
      };
      set(slabs.state.parameters, {0.5, -1, 2});
      AdamConfig settings = config(c.kind, 0.01);
      settings.beta2 = c.beta2;
      const Adam adam(settings, ranges);
      for (int t = 1; t <= 10; ++t) {
        set(slabs.state.gradients, {static_cast<double>(t), -2, 1.0 / t});
        adam.step(slabs.state, t, 0.1, 1, 1);
      }
      const std::vector<double> p = values(slabs.state.parameters), v = values(slabs.state.squares);
      for (std::size_t i = 0; i < 3; ++i) {
        // Parameters near 0 are differences of numbers near 1.
        EXPECT_NEAR(p[i], c.parameters[i], dtype == DType::f64 ? 1e-13 : 1e-6);
        EXPECT_NEAR(v[i], c.squares[i], (dtype == DType::f64 ? 1e-13 : 1e-6) * c.squares[i]);
      }
    }
}

TEST(AdamTest, EqualsTheEquationsAcrossBlocksAndDecayRanges) {
  constexpr std::int64_t size = 200003;
  // Ranges that begin, end and lie across the blocks; a gap; a range without decay.
  const std::vector<DecayRange> ranges{{0, 10, false},   {10, 65526, true},     {65536, 100, true},
                                       {70000, 5, true}, {100000, 50000, true}, {150000, 50003, false}};
  const auto decayed = [&](std::int64_t i) {
    for (const DecayRange& r : ranges)
      if (i >= r.begin && i < r.begin + r.length) return r.decay;
    return false;
  };
  for (const DType dtype : {DType::f64, DType::f32})
    for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
      Slabs slabs(size, dtype);
      const AdamConfig c = config(kind, 0.1);
      const Adam adam(c, ranges);
      std::vector<ScalarAdam> oracle;
      for (const double p : values(slabs.state.parameters)) oracle.push_back({p});
      const std::vector<double> gradients = values(slabs.state.gradients);
      for (int t = 1; t <= 3; ++t) {
        adam.step(slabs.state, t, 0.01, 0.25, 1);
        for (std::int64_t i = 0; i < size; ++i)
          oracle[static_cast<std::size_t>(i)].step(c, 0.25 * gradients[static_cast<std::size_t>(i)], t, 0.01,
                                                   decayed(i));
      }
      const std::vector<double> p = values(slabs.state.parameters), m = values(slabs.state.mean),
                                v = values(slabs.state.squares);
      const double tolerance = dtype == DType::f64 ? 1e-12 : 1e-6;
      for (std::size_t i = 0; i < oracle.size(); ++i) {
        ASSERT_NEAR(p[i], oracle[i].p, tolerance) << i;
        ASSERT_NEAR(m[i], oracle[i].m, tolerance) << i;
        ASSERT_NEAR(v[i], oracle[i].v, tolerance) << i;
      }
    }
}

TEST(AdamTest, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto after = [](int threads) {
    Slabs slabs(300001, DType::f32);
    const std::vector<DecayRange> ranges{{1000, 200000, true}};
    const Adam adam(config(OptimizerKind::adamw, 0.1), ranges);
    for (int t = 1; t <= 3; ++t) adam.step(slabs.state, t, 0.01, 0.5, threads);
    update_average(slabs.state.mean, slabs.state.parameters, 0.99, threads);
    return std::vector<std::vector<double>>{values(slabs.state.parameters), values(slabs.state.mean),
                                            values(slabs.state.squares)};
  };
  const auto one = after(1);
  EXPECT_EQ(one, after(2));
  EXPECT_EQ(one, after(7));
}

TEST(AdamTest, RefusesWhatDoesNotFit) {
  const std::vector<DecayRange> overlapping{{0, 10, true}, {5, 10, false}};
  EXPECT_EQ(error_of([&] { Adam(AdamConfig{}, overlapping); }),
            "decay range of 10 elements at 5, expected at 10 or later");
  Slabs slabs(4, DType::f32);
  const Adam adam(AdamConfig{}, {});
  EXPECT_EQ(error_of([&] { adam.step(slabs.state, 0, 0.1, 1, 1); }), "update 0 of Adam, expected at least 1");
  slabs.state.mean = slabs.arena.zeros({5}, DType::f32);
  EXPECT_EQ(error_of([&] { adam.step(slabs.state, 1, 0.1, 1, 1); }),
            "Adam: slabs f32[4] and f32[5], expected the same");
  EXPECT_EQ(error_of([&] { update_average(slabs.state.mean, slabs.state.parameters, 0.9, 1); }),
            "moving average: slabs f32[5] and f32[4], expected the same");
}

TEST(AdamTest, IsConfiguredInYaml) {
  const auto c = config::parse<AdamConfig>(
      "optimizer: adamw\nweight_decay: 0.01\nbeta2: 0.999\nclip_norm: 25\n", "t.yaml");
  AdamConfig expected;
  expected.optimizer = OptimizerKind::adamw;
  expected.weight_decay = 0.01;
  expected.beta2 = 0.999;
  expected.clip_norm = 25;
  EXPECT_EQ(c, expected);
  EXPECT_EQ(error_of([] { config::parse<AdamConfig>("beta1: 1\n", "t.yaml"); }),
            "t.yaml:1: beta1: 1, expected at least 0 and below 1");
}

TEST(GradientTest, NormIsExactAndIndependentOfThreads) {
  Arena arena, scratch;
  const Tensor small = arena.zeros({3}, DType::f32);
  small.as<float>()[0] = 3;
  small.as<float>()[2] = -4;
  EXPECT_EQ(global_norm(small, scratch, 1), 5);
  EXPECT_EQ(global_norm(arena.zeros({0}, DType::f32), scratch, 1), 0);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor large = random_tensor(arena, {300001}, dtype, 3);
    double squares = 0;
    for (const double x : values(large)) squares += x * x;
    const double one = global_norm(large, scratch, 1);
    EXPECT_NEAR(one, std::sqrt(squares), 1e-9);
    EXPECT_EQ(one, global_norm(large, scratch, 2));
    EXPECT_EQ(one, global_norm(large, scratch, 7));
  }
  EXPECT_EQ(scratch.mark(), 0U);
}

TEST(GradientTest, NormsOfHugeGradientsDoNotOverflow) {
  Arena arena, scratch;
  const Tensor g = arena.zeros({2}, DType::f32);
  g.as<float>()[0] = 3e30F;
  g.as<float>()[1] = 4e30F;
  EXPECT_NEAR(global_norm(g, scratch, 1), 5e30, 1e24);
}

TEST(GradientTest, ClipsAsPyTorch) {
  EXPECT_EQ(clip_factor(10, 0), 1);
  EXPECT_EQ(clip_factor(10, 25), 1);
  EXPECT_DOUBLE_EQ(clip_factor(50, 25), 25 / 50.000001);
}

TEST(GradientTest, FindsTheFirstNonFiniteElement) {
  Arena arena, scratch;
  const Tensor g = random_tensor(arena, {100000}, DType::f32, 4);
  EXPECT_EQ(first_non_finite(g), -1);
  g.as<float>()[99999] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_non_finite(g), 99999);
  g.as<float>()[70000] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first_non_finite(g), 70000);
  EXPECT_FALSE(std::isfinite(global_norm(g, scratch, 2)));
}

TEST(GradientTest, AveragesExponentially) {
  Arena arena;
  const Tensor average = arena.zeros({70000}, DType::f64), parameters = arena.zeros({70000}, DType::f64);
  for (double& x : parameters.span<double>()) x = 4;
  update_average(average, parameters, 0.75, 2);
  EXPECT_EQ(average.as<double>()[69999], 1);
  update_average(average, parameters, 0.75, 2);
  EXPECT_EQ(average.as<double>()[0], 1.75);
}

}  // namespace
}  // namespace polyhead::train
