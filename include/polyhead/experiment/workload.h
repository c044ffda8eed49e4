#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "polyhead/experiment/results.h"
#include "polyhead/train/config.h"
#include "polyhead/train/training_data.h"

namespace polyhead::experiment {

/// The training text of a configuration as the cost of its models depends on it.
class Workload {
 public:
  /// Reads the text and learns the tokenizers as training does.
  explicit Workload(const train::Config& config);

  /// Parameters; FLOPs of matrix products, forward and backward (nn::training_flops), a target token; and the bytes of the
  /// attention scores of a pair of S source and T target tokens, one f32 a query and key of every head,
  ///   4·(h_e·S² + h_d·T² + h_c·T·S),
  /// with h_e, h_d, h_c the heads of all layers of the encoder's, decoder's and cross-attention. Both are means over the training text.
  Costs costs(const nn::ModelConfig& model) const;

  /// Updates until training ends by max_steps or max_epochs; null where neither is set.
  std::optional<double> updates(const train::TrainingConfig& training) const;

  /// Seconds of processor time that an update takes on one thread, which other processes do not change: the fastest of
  /// three, after one that prepares memory. `config` has the data and
  /// tokenizers of this workload.
  double seconds_per_update(const train::Config& config) const;

  /// The settings that the text depends on: two configurations with the same key have the same workload.
  static std::string key(const train::Config& config);

 private:
  train::TrainingData data_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
      lengths_;  ///< pairs by source and target tokens
  std::int64_t target_tokens_ = 0;
};

/// Workloads, each made once.
class Workloads {
 public:
  const Workload& of(const train::Config& config);

 private:
  std::map<std::string, Workload> made_;
};

}  // namespace polyhead::experiment
