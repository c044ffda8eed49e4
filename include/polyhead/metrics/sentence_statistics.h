#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace polyhead::metrics {

/// What a score of a corpus is made of, sentence by sentence: a row of counts each, and the score as a function of their
/// sum. Made once, it gives the score of any resample of the sentences without reading them again.
class SentenceStatistics {
 public:
  using ScoreOf = std::function<double(std::span<const double> sums)>;
  /// `rows` sentence by sentence, `width` counts each. Throws Error unless they are whole rows of numbers that are finite.
  SentenceStatistics(std::size_t width, std::vector<double> rows, ScoreOf score);

  std::size_t width() const { return width_; }
  std::size_t sentences() const { return rows_.size() / width_; }
  std::span<const double> row(std::size_t sentence) const {
    return std::span(rows_).subspan(sentence * width_, width_);
  }
  double score_of(std::span<const double> sums) const { return score_(sums); }
  /// Of all sentences.
  std::vector<double> sums() const;
  double score() const { return score_of(sums()); }
  /// Of these; one may be there more than once.
  double score(std::span<const std::int32_t> sentences) const;

 private:
  std::size_t width_;
  std::vector<double> rows_;
  ScoreOf score_;
};

/// scale·Σ numerators / Σ denominators, as of the share of probes that are right, or of the loss per token.
/// Throws Error unless there is a denominator above 0 for every numerator.
SentenceStatistics ratio_statistics(std::span<const double> numerators, std::span<const double> denominators,
                                    double scale = 1);
/// The mean of a figure of each sentence, times `scale`.
SentenceStatistics mean_statistics(std::span<const double> figures, double scale = 1);

}  // namespace polyhead::metrics
