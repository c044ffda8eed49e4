#include "polyhead/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "polyhead/config/yaml.h"
#include "support/check_op.h"

namespace polyhead::train {
namespace {

using polyhead::testing::error_of;

ScheduleConfig config(const std::string& name) {
  ScheduleConfig c;
  c.schedule = name;
  c.learning_rate = 0.8;
  c.warmup_steps = 100;
  c.decay_steps = 500;
  return c;
}

void expect_rates(const ScheduleConfig& c, const std::vector<std::pair<std::int64_t, double>>& expected) {
  const Schedule schedule(c, 64);
  for (const auto& [step, rate] : expected)
    EXPECT_NEAR(schedule.rate(step), rate, 1e-15) << c.schedule << " at step " << step;
}

TEST(ScheduleTest, InverseSquareRoot) {
  expect_rates(config("inverse_sqrt"),
               {{1, 0.008}, {50, 0.4}, {100, 0.8}, {400, 0.4}, {10000, 0.08}, {1000000, 0.008}});
}

TEST(ScheduleTest, Noam) {
  // 0.8/√64 = 0.1; w^−3/2 = 0.001
  expect_rates(config("noam"), {{1, 0.0001}, {50, 0.005}, {100, 0.01}, {400, 0.005}, {10000, 0.001}});
}

TEST(ScheduleTest, Cosine) {
  ScheduleConfig c = config("cosine");
  expect_rates(c, {{1, 0.008},
                   {100, 0.8},
                   {200, 0.4 * (1 + std::sqrt(0.5))},
                   {300, 0.4},
                   {500, 0},
                   {501, 0},
                   {100000, 0}});
  c.min_learning_rate = 0.2;
  expect_rates(c, {{50, 0.4}, {100, 0.8}, {300, 0.5}, {500, 0.2}, {501, 0.2}});
  EXPECT_EQ(Schedule(c, 64).rate(500), 0.2);
}

TEST(ScheduleTest, Linear) {
  ScheduleConfig c = config("linear");
  expect_rates(c, {{1, 0.008}, {100, 0.8}, {101, 0.798}, {300, 0.4}, {499, 0.002}, {500, 0}, {100000, 0}});
  c.min_learning_rate = 0.4;
  expect_rates(c, {{300, 0.6}, {500, 0.4}, {501, 0.4}});
}

TEST(ScheduleTest, Constant) {
  expect_rates(config("constant"), {{1, 0.008}, {50, 0.4}, {100, 0.8}, {100000, 0.8}});
}

TEST(ScheduleTest, NoWarmUpBeginsAtTheTop) {
  for (const ScheduleRow& row : schedules()) {
    ScheduleConfig c = config(row.name);
    c.warmup_steps = 0;
    const double top = c.schedule == "noam" ? 0.1 : 0.8;
    EXPECT_NEAR(Schedule(c, 64).rate(1), top, 0.002) << c.schedule;
    EXPECT_LE(Schedule(c, 64).rate(2), Schedule(c, 64).rate(1)) << c.schedule;
  }
}

TEST(ScheduleTest, PlateauFollowsTheScore) {
  ScheduleConfig c = config("plateau");
  c.plateau_patience = 2;
  c.min_learning_rate = 0.15;
  Schedule schedule(c, 64);
  const auto rate_after = [&](double score) {
    schedule.validated(score);
    return schedule.rate(1000);
  };
  EXPECT_EQ(schedule.rate(50), 0.4);
  EXPECT_EQ(rate_after(-3), 0.8);
  EXPECT_EQ(rate_after(-2), 0.8);
  EXPECT_EQ(rate_after(-2), 0.8);  // not better: one
  EXPECT_EQ(rate_after(std::numeric_limits<double>::quiet_NaN()), 0.4);
  EXPECT_EQ(rate_after(-2.5), 0.4);
  EXPECT_EQ(rate_after(-1.9), 0.4);  // better: the count begins anew
  EXPECT_EQ(rate_after(-2), 0.4);
  EXPECT_EQ(rate_after(-2), 0.2);
  rate_after(-2);
  EXPECT_EQ(rate_after(-2), 0.15);
}

TEST(ScheduleTest, PlateauGoesOnWhereItWasSaved) {
  Schedule first(config("plateau"), 64);
  for (const double score : {1.0, 0.5, 0.5, 0.5, 0.5, 0.5}) first.validated(score);
  Schedule second(config("plateau"), 64);
  second.restore(first.state());
  EXPECT_EQ(second.rate(200), 0.4);
  first.validated(0.5);
  second.validated(0.5);
  EXPECT_EQ(first.state(), second.state());
  EXPECT_EQ(second.rate(200), 0.2);
}

TEST(ScheduleTest, OnlyPlateauFollowsTheScore) {
  for (const ScheduleRow& row : schedules()) {
    const ScheduleConfig c = config(row.name);
    Schedule schedule(c, 64);
    const double before = schedule.rate(200);
    for (int i = 0; i < 10; ++i) schedule.validated(-1);
    EXPECT_EQ(schedule.rate(200) != before, c.schedule == "plateau") << c.schedule;
  }
}

TEST(ScheduleTest, NamesWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { Schedule(config("cosin"), 64); }),
            "schedule: \"cosin\", expected one of inverse_sqrt, noam, cosine, linear, constant, plateau");
  ScheduleConfig c = config("cosine");
  c.decay_steps.reset();
  EXPECT_EQ(error_of([&] { Schedule(c, 64); }), "decay_steps: missing, schedule cosine ends there");
  c.decay_steps = 100;
  EXPECT_EQ(error_of([&] { Schedule(c, 64); }), "decay_steps: 100, expected more than warmup_steps 100");
  c = config("linear");
  c.min_learning_rate = 1;
  EXPECT_EQ(error_of([&] { Schedule(c, 64); }), "min_learning_rate: 1, expected at most learning_rate 0.8");
  EXPECT_EQ(error_of([] { Schedule(config("noam"), 64).rate(0); }),
            "learning rate of update 0, expected at least 1");
  EXPECT_EQ(error_of([] { Schedule(config("noam"), 0); }), "schedule: d_model 0, expected at least 1");
}

TEST(ScheduleTest, IsConfiguredInYaml) {
  const auto c = config::parse<ScheduleConfig>(
      "schedule: cosine\nlearning_rate: 0.8\nwarmup_steps: 100\ndecay_steps: 500\n", "t.yaml");
  EXPECT_EQ(c, config("cosine"));
  EXPECT_EQ(config::parse<ScheduleConfig>(config::dump(c), "t.yaml"), c);
  EXPECT_EQ(error_of([] { config::parse<ScheduleConfig>("warmup_steps: 10\nschedule: linear\n", "t.yaml"); }),
            "t.yaml: decay_steps: missing, schedule linear ends there");
}

}  // namespace
}  // namespace polyhead::train
