#include "polyhead/metrics/sentence_statistics.h"

#include <algorithm>
#include <cmath>

#include "polyhead/core/error.h"

namespace polyhead::metrics {

SentenceStatistics::SentenceStatistics(std::size_t width, std::vector<double> rows, ScoreOf score)
    : width_(width), rows_(std::move(rows)), score_(std::move(score)) {
  require(width_ > 0 && rows_.size() % width_ == 0, "sentence statistics: ", rows_.size(),
          " counts, expected rows of ", width_);
  const auto wrong = std::find_if_not(rows_.begin(), rows_.end(), [](double x) { return std::isfinite(x); });
  require(wrong == rows_.end(), "sentence statistics: those of sentence ",
          static_cast<std::size_t>(wrong - rows_.begin()) / width_ + 1, " are not finite");
}

std::vector<double> SentenceStatistics::sums() const {
  std::vector<double> sums(width_);
  for (std::size_t i = 0; i < rows_.size(); ++i) sums[i % width_] += rows_[i];
  return sums;
}

double SentenceStatistics::score(std::span<const std::int32_t> sentences) const {
  std::vector<double> sums(width_);
  for (const std::int32_t sentence : sentences) {
    const double* counts = rows_.data() + static_cast<std::size_t>(sentence) * width_;
    for (std::size_t i = 0; i < width_; ++i) sums[i] += counts[i];
  }
  return score_(sums);
}

SentenceStatistics ratio_statistics(std::span<const double> numerators, std::span<const double> denominators,
                                    double scale) {
  require(numerators.size() == denominators.size(), "ratio of ", numerators.size(), " numerators and ",
          denominators.size(), " denominators");
  std::vector<double> rows;
  for (std::size_t i = 0; i < numerators.size(); ++i) {
    require(denominators[i] > 0, "ratio: the denominator of sentence ", i + 1, " is ", denominators[i],
            ", expected more than 0");
    rows.insert(rows.end(), {numerators[i], denominators[i]});
  }
  return {2, std::move(rows), [scale](std::span<const double> sums) { return scale * sums[0] / sums[1]; }};
}

SentenceStatistics mean_statistics(std::span<const double> figures, double scale) {
  return ratio_statistics(figures, std::vector<double>(figures.size(), 1), scale);
}

}  // namespace polyhead::metrics
