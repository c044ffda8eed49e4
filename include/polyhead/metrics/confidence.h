#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace polyhead::metrics {

/// A score and its confidence interval, of 95% where not said otherwise, in the score's unit.
struct Estimate {
  double score = 0, low = 0, high = 0;
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

/// The share of `successes` among independent `trials`, in percent, with Wilson's score interval,
///   (p̂ + z²/2n ± z·√(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n),  z = Φ⁻¹(0.975)
/// (Wilson 1927, "Probable inference, the law of succession, and statistical inference"; it keeps its level for
/// small n and for shares near 0 and 1: Brown, Cai & DasGupta 2001, "Interval estimation for a binomial proportion").
/// Without trials the score is not a number, and the interval all of 0 to 100.
Estimate wilson(std::int64_t successes, std::int64_t trials);

/// `score` of `lines` with the percentile interval of its bootstrap (Efron & Tibshirani 1993; of a test set's sentences,
/// Koehn 2004, W04-3250): from the 2.5th to the 97.5th percentile of the scores of `draws` samples, each of as many
/// lines, with replacement. Percentiles between two samples are interpolated. The result is a function of its arguments.
/// Throws Error when there are no lines or no draws.
Estimate bootstrap(std::span<const std::int32_t> lines,
                   const std::function<double(std::span<const std::int32_t>)>& score, std::uint64_t seed = 1,
                   int draws = 1000);

}  // namespace polyhead::metrics
