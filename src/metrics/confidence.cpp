#include "polyhead/metrics/confidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "percentile_interval.h"
#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"

namespace polyhead::metrics {
namespace {

constexpr double z = 1.959963984540054;  // Φ⁻¹(0.975)

/// Of sorted values, between which it interpolates linearly.
double quantile(const std::vector<double>& values, double share) {
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - std::floor(at));
}

}  // namespace

Estimate percentile_interval(double score, std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  return {score, quantile(draws, 0.025), quantile(draws, 0.975)};
}

Estimate wilson(std::int64_t successes, std::int64_t trials) {
  if (trials == 0) return {std::numeric_limits<double>::quiet_NaN(), 0, 100};
  const auto n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n, scale = 100 / (1 + z * z / n);
  const double centre = p + z * z / (2 * n), half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {100 * static_cast<double>(successes) / n, successes == 0 ? 0 : scale * (centre - half),
          successes == trials ? 100 : scale * (centre + half)};
}

Estimate bootstrap(std::span<const std::int32_t> lines,
                   const std::function<double(std::span<const std::int32_t>)>& score, std::uint64_t seed,
                   int draws) {
  require(!lines.empty() && draws > 0, "bootstrap of ", lines.size(), " lines with ", draws,
          " draws, expected at least one of each");
  RandomStream random(RngKey{seed}.fold("bootstrap"));
  std::vector<std::int32_t> sample(lines.size());
  std::vector<double> scores;
  for (int draw = 0; draw < draws; ++draw) {
    for (std::int32_t& line : sample) line = lines[random.below(lines.size())];
    scores.push_back(score(sample));
  }
  return percentile_interval(score(lines), std::move(scores));
}

}  // namespace polyhead::metrics
