#include "polyhead/metrics/confidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "polyhead/core/error.h"

namespace polyhead::metrics {
namespace {

/// Newcombe 1998 ("Two-sided confidence intervals for the single proportion"), table I, to his four digits.
TEST(Wilson, GivesThePublishedIntervals) {
  const auto expect = [](std::int64_t successes, std::int64_t trials, double low, double high) {
    const Estimate estimate = wilson(successes, trials);
    EXPECT_DOUBLE_EQ(estimate.score, 100.0 * static_cast<double>(successes) / static_cast<double>(trials));
    EXPECT_NEAR(estimate.low, low, 0.005) << successes << " of " << trials;
    EXPECT_NEAR(estimate.high, high, 0.005) << successes << " of " << trials;
  };
  expect(81, 263, 25.53, 36.62);
  expect(15, 148, 6.24, 16.05);
  expect(0, 20, 0, 16.11);
  expect(1, 29, 0.61, 17.18);
  expect(20, 20, 83.89, 100);
}

TEST(Wilson, SaysNothingWithoutTrials) {
  const Estimate estimate = wilson(0, 0);
  EXPECT_TRUE(std::isnan(estimate.score));
  EXPECT_EQ(estimate.low, 0);
  EXPECT_EQ(estimate.high, 100);
  EXPECT_EQ(wilson(0, 7).low, 0);
  EXPECT_EQ(wilson(7, 7).high, 100);
}

/// The share of lines below `limit`.
auto share_below(std::int32_t limit) {
  return [limit](std::span<const std::int32_t> lines) {
    double count = 0;
    for (const std::int32_t line : lines) count += line < limit ? 1 : 0;
    return 100 * count / static_cast<double>(lines.size());
  };
}

TEST(Bootstrap, OfAShareIsNearlyTheIntervalOfTheShare) {
  std::vector<std::int32_t> lines(400);
  std::iota(lines.begin(), lines.end(), 0);
  const Estimate exact = wilson(100, 400), resampled = bootstrap(lines, share_below(100), 1, 4000);
  EXPECT_EQ(resampled.score, 25);
  EXPECT_NEAR(resampled.low, exact.low, 0.6);
  EXPECT_NEAR(resampled.high, exact.high, 0.6);
  EXPECT_EQ(bootstrap(lines, share_below(100), 1, 4000), resampled);
  EXPECT_NE(bootstrap(lines, share_below(100), 2, 4000), resampled);
}

TEST(Bootstrap, OfEqualLinesHasNoWidth) {
  EXPECT_EQ(bootstrap(std::vector<std::int32_t>{3, 4, 5}, share_below(9)), (Estimate{100, 100, 100}));
  EXPECT_THROW(bootstrap({}, share_below(9)), Error);
  EXPECT_THROW(bootstrap(std::vector<std::int32_t>{3}, share_below(9), 1, 0), Error);
}

}  // namespace
}  // namespace polyhead::metrics
