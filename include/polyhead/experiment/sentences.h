#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "polyhead/metrics/score.h"
#include "polyhead/metrics/sentence_statistics.h"

namespace polyhead::experiment {

/// What a model made of the sentences of a split, as `polyhead evaluate --sentences` wrote it.
class Sentences {
 public:
  /// Throws FileError when the file cannot be read, naming the line.
  explicit Sentences(std::string path);

  /// What a metric of theirs is made of: of the sentences that have it, which are those with probes for the accuracies of
  /// probes, and those that the model has places for, for loss and perplexity. `options` are those of the evaluation.
  /// Throws FileError when the file does not tell what the metric takes.
  metrics::SentenceStatistics statistics(const std::string& metric, const metrics::Options& options) const;

  const std::string& path() const { return path_; }
  /// Of sources and targets: the same for models that were measured on the same sentences.
  std::uint64_t digest() const { return digest_; }

 private:
  std::string path_;
  std::uint64_t digest_ = 0;
  std::vector<std::string> translations_, targets_;
  std::vector<double> losses_, tokens_;             ///< of the sentences that have them
  std::vector<double> slots_, contrasts_, probes_;  ///< right ones and all, of the sentences that have probes
};

}  // namespace polyhead::experiment
