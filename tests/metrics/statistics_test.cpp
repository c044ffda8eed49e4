#include "polyhead/metrics/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "polyhead/core/error.h"
#include "support/message.h"

namespace polyhead::metrics {
namespace {

using polyhead::testing::message_of;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

/// Hours of sleep gained by ten patients with either of two drugs (Student 1908, "The probable error of a mean").
const Values first_drug{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
    second_drug{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

/// Closed forms of 1, 2, 3 and 4 degrees of freedom.
TEST(StudentT, IsTheClosedFormOfFewDegrees) {
  for (const double t : {-30., -2.5, -1., -0.01, 0., 0.3, 1., 4., 12., 200.}) {
    const double square = t * t, pi = std::numbers::pi, root3 = std::sqrt(3.);
    EXPECT_NEAR(student_t_cdf(t, 1), 0.5 + std::atan(t) / pi, 1e-14);
    EXPECT_NEAR(student_t_cdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + square)), 1e-14);
    EXPECT_NEAR(student_t_cdf(t, 3), 0.5 + (t / root3 / (1 + square / 3) + std::atan(t / root3)) / pi, 1e-14);
    EXPECT_NEAR(student_t_cdf(t, 4),
                0.5 + 0.375 * t / std::sqrt(1 + square / 4) * (1 - square / (1 + square / 4) / 12), 1e-14);
  }
  EXPECT_EQ(student_t_cdf(inf, 5), 1);
  EXPECT_EQ(student_t_cdf(-inf, 5), 0);
}

/// The printed tables, such as that of Fisher & Yates 1938, to their three digits.
TEST(StudentT, HasTheQuantilesOfTheTables) {
  const auto expect = [](double share, double degrees, double t) {
    EXPECT_NEAR(student_t_quantile(share, degrees), t, 5.1e-4) << share << ' ' << degrees;
    EXPECT_NEAR(student_t_quantile(1 - share, degrees), -t, 5.1e-4) << share << ' ' << degrees;
    EXPECT_NEAR(student_t_cdf(student_t_quantile(share, degrees), degrees), share, 1e-13);
  };
  expect(0.975, 1, 12.706);
  expect(0.975, 2, 4.303);
  expect(0.975, 3, 3.182);
  expect(0.975, 4, 2.776);
  expect(0.975, 9, 2.262);
  expect(0.975, 30, 2.042);
  expect(0.975, 120, 1.980);
  expect(0.95, 4, 2.132);
  expect(0.95, 9, 1.833);
  expect(0.995, 5, 4.032);
  expect(0.9995, 10, 4.587);
  EXPECT_EQ(student_t_quantile(0.5, 7), 0);
  EXPECT_NEAR(student_t_quantile(0.975, 1e7), 1.959964, 1e-5);  // nearly normal
  EXPECT_EQ(message_of<Error>([] { student_t_quantile(1, 3); }),
            "quantile of a share of 1, expected one between 0 and 1");
  EXPECT_EQ(message_of<Error>([] { student_t_cdf(1, 0); }),
            "Student's t with 0 degrees of freedom, expected more than 0");
}

TEST(Summarize, GivesTheMeanWithItsInterval) {
  const SeedSummary summary = summarize(Values{2, 4, 6, 8});
  EXPECT_EQ(summary.mean.score, 5);
  EXPECT_NEAR(summary.deviation, std::sqrt(20. / 3), 1e-14);
  EXPECT_NEAR(summary.mean.high - 5, 3.182446 * std::sqrt(20. / 12), 1e-6);
  EXPECT_NEAR(5 - summary.mean.low, 3.182446 * std::sqrt(20. / 12), 1e-6);
  EXPECT_EQ(summary.seeds, 4);
  EXPECT_EQ(summary.diverged, 0);
}

TEST(Summarize, CountsTheDivergedAndLeavesThemOut) {
  const SeedSummary all = summarize(Values{2, 4, 6, 8}), some = summarize(Values{2, nan, 4, inf, 6, 8, -inf});
  EXPECT_EQ(some.mean, all.mean);
  EXPECT_EQ(some.deviation, all.deviation);
  EXPECT_EQ(some.seeds, 4);
  EXPECT_EQ(some.diverged, 3);
}

TEST(Summarize, HasNoIntervalOfOneAndNothingOfNone) {
  const SeedSummary one = summarize(Values{3, nan}), none = summarize(Values{nan});
  EXPECT_EQ(one.mean.score, 3);
  EXPECT_TRUE(std::isnan(one.mean.low) && std::isnan(one.mean.high));
  EXPECT_EQ(one.seeds, 1);
  EXPECT_TRUE(std::isnan(none.mean.score));
  EXPECT_EQ(none.diverged, 1);
  const SeedSummary equal = summarize(Values{0.1, 0.1, 0.1});
  EXPECT_EQ(equal.mean, (Estimate{0.1, 0.1, 0.1}));
  EXPECT_EQ(equal.deviation, 0);
}

/// t = 4.0621, p = 0.002833 and the interval 0.7001142 to 2.4598858 are those of t.test() in R's help on these data.
TEST(PairedDifference, IsStudentsTestOfHisSleepData) {
  const PairedDifference gain = paired_difference(first_drug, second_drug);
  EXPECT_NEAR(gain.difference.score, 1.58, 1e-14);
  EXPECT_NEAR(gain.difference.low, 0.7001142, 5.1e-8);
  EXPECT_NEAR(gain.difference.high, 2.4598858, 5.1e-8);
  EXPECT_NEAR(gain.t, 4.0621, 5.1e-5);
  EXPECT_NEAR(gain.p, 0.002833, 5.1e-7);
  EXPECT_EQ(gain.pairs, 10);
  EXPECT_EQ(gain.left_out, 0);
  const PairedDifference loss = paired_difference(second_drug, first_drug);
  EXPECT_EQ(loss.t, -gain.t);
  EXPECT_EQ(loss.p, gain.p);
}

TEST(PairedDifference, LeavesOutPairsWithoutAResult) {
  Values baseline = first_drug, system = second_drug;
  baseline.insert(baseline.begin() + 3, {nan, 5, nan});
  system.insert(system.begin() + 3, {1, inf, nan});
  const PairedDifference some = paired_difference(baseline, system),
                         all = paired_difference(first_drug, second_drug);
  EXPECT_EQ(some.difference, all.difference);
  EXPECT_EQ(some.p, all.p);
  EXPECT_EQ(some.pairs, 10);
  EXPECT_EQ(some.left_out, 3);
  EXPECT_EQ(message_of<Error>([&] { paired_difference(baseline, first_drug); }),
            "paired results: 13 of the baseline and 10 of the system, expected one of each for every seed");
}

TEST(PairedDifference, OfEqualDifferencesIsCertain) {
  const PairedDifference none = paired_difference(Values{1, 2, 3}, Values{1, 2, 3});
  EXPECT_EQ(none.t, 0);
  EXPECT_EQ(none.p, 1);
  const PairedDifference same = paired_difference(Values{1, 2, 3}, Values{0.5, 1.5, 2.5});
  EXPECT_EQ(same.t, -inf);
  EXPECT_EQ(same.p, 0);
  const PairedDifference one = paired_difference(Values{1}, Values{2});
  EXPECT_EQ(one.difference.score, 1);
  EXPECT_TRUE(std::isnan(one.p) && std::isnan(one.difference.low));
}

/// The bound of the 90% interval is where the larger of the two p is 0.05: 1.58 + t₀.₉₅(9)·1.58/4.062128, t₀.₉₅(9) = 1.833113.
TEST(PairedEquivalence, HoldsBeyondThe90PercentInterval) {
  const double bound = 1.58 + 1.833113 * 1.58 / 4.062128;
  const Equivalence at = paired_equivalence(first_drug, second_drug, bound);
  EXPECT_NEAR(at.p, 0.05, 1e-6);
  EXPECT_NEAR(at.difference.high, bound, 1e-6);
  EXPECT_NEAR(at.difference.low, 3.16 - bound, 1e-6);
  EXPECT_EQ(at.pairs, 10);
  EXPECT_LT(paired_equivalence(first_drug, second_drug, 3).p, 0.05);
  EXPECT_GT(paired_equivalence(first_drug, second_drug, 2).p, 0.05);
  EXPECT_NEAR(paired_equivalence(second_drug, first_drug, bound).p, 0.05, 1e-6);
  EXPECT_EQ(paired_equivalence(Values{1, 2}, Values{1, 2}, 0.1).p, 0);
  EXPECT_EQ(paired_equivalence(Values{1, 2}, Values{2, 3}, 0.1).p, 1);
  EXPECT_TRUE(std::isnan(paired_equivalence(Values{1}, Values{1}, 0.1).p));
  EXPECT_EQ(message_of<Error>([] { paired_equivalence(Values{1}, Values{1}, 0); }),
            "equivalence within 0, expected a margin above 0");
}

/// Four tests: 4·0.005, 3·0.01, 2·0.03, and the last no smaller than that.
TEST(Holm, AdjustsStepByStep) {
  EXPECT_THAT(holm(Values{0.01, 0.04, 0.03, 0.005}), Pointwise(DoubleNear(1e-15), {0.03, 0.06, 0.06, 0.02}));
  EXPECT_THAT(holm(Values{0.5, 0.5, 0.9}), ElementsAre(1, 1, 1));
  EXPECT_THAT(holm(Values{}), IsEmpty());
  EXPECT_EQ(message_of<Error>([] {
              holm(Values{0.1, 1.5});
            }),
            "p-value 2 is 1.5, expected a number in 0 to 1");
}

/// Benjamini & Hochberg 1995, section 3.2: of these 15 their procedure rejects four at 0.05, Holm's three.
TEST(BenjaminiHochberg, RejectsWhatItsPaperDoes) {
  const Values p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000};
  const auto rejected = [](const Values& adjusted) {
    return std::count_if(adjusted.begin(), adjusted.end(), [](double x) { return x <= 0.05; });
  };
  EXPECT_EQ(rejected(benjamini_hochberg(p)), 4);
  EXPECT_EQ(rejected(holm(p)), 3);
  const Values adjusted = benjamini_hochberg(Values{0.04, 0.01, 0.02, 0.03, 0.9});
  EXPECT_THAT(adjusted, Pointwise(DoubleNear(1e-15), {0.05, 0.05, 0.05, 0.05, 0.9}));
  EXPECT_THROW(benjamini_hochberg(Values{nan}), Error);
}

/// Of 10 pairs without ties ρ = 1 − 6·Σd²/(n(n² − 1)) = 1 − 6·194/990; the two-sided p
/// is that of t = -0.50498 with 8 degrees of freedom.
TEST(Spearman, IsTheTextbookFormulaWithoutTies) {
  const Values iq{106, 100, 86, 101, 99, 103, 97, 113, 112, 110}, hours{7, 27, 2, 50, 28, 29, 20, 12, 6, 17};
  const RankCorrelation result = spearman(iq, hours);
  EXPECT_NEAR(result.rho, -29. / 165, 1e-15);
  EXPECT_NEAR(result.p, 0.627188, 5.1e-7);
}

/// With ties: ranks 1, 2.5, 2.5, 4, 5 and 1.5, 1.5, 3, 4.5, 4.5, whose Pearson correlation is 8.25/√(9.5·9).
TEST(Spearman, GivesTiesTheMeanOfTheirRanks) {
  EXPECT_NEAR(spearman(Values{1, 2, 2, 3, 9}, Values{0, 0, 4, 7, 7}).rho, 8.25 / std::sqrt(9.5 * 9), 1e-15);
  EXPECT_EQ(spearman(Values{1, 2, 3}, Values{10, 20, 40}).rho, 1);
  EXPECT_EQ(spearman(Values{1, 2, 3}, Values{10, 20, 40}).p, 0);
  EXPECT_TRUE(std::isnan(spearman(Values{1, 2, 3}, Values{7, 7, 7}).rho));
  EXPECT_EQ(message_of<Error>([] {
              spearman(Values{1, 2}, Values{1, 2});
            }),
            "rank correlation of 2 and 2 values, expected as many of both, at least 3");
  EXPECT_THROW(spearman(Values{1, 2, nan}, Values{1, 2, 3}), Error);
}

}  // namespace
}  // namespace polyhead::metrics
