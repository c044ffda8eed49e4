#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "polyhead/core/profile.h"
#include "polyhead/train/config.h"
#include "polyhead/train/optimizer.h"
#include "polyhead/train/schedule.h"
#include "polyhead/train/update.h"

namespace polyhead::train {

/// One update, as the log has it. Losses are in nats per target token.
struct StepReport {
  std::int64_t step = 0, epoch = 0;    ///< from 1
  double loss = 0;                     ///< label-smoothed
  double negative_log_likelihood = 0;  ///< unsmoothed
  double token_accuracy = 0;           ///< of the batch, in percent
  double learning_rate = 0, grad_norm = 0;
  double target_tokens = 0, target_tokens_per_second = 0;
  double seconds = 0;  ///< of training so far, over all resumptions
  std::optional<double> open_heads =
      {};  ///< how many are expected to stay open, where they have learned gates
  /// D of heads on subspace, position and output (see Disagreement), where the loss has it.
  std::array<std::optional<double>, 3> disagreement = {};
};

/// What an update of the weights is: gradients in lanes, their norm, Adam at the schedule's rate, and the moving average
/// of the weights where `training.ema_decay` is set. Holds all that it needs besides the weights, which are the model's.
class Updater {
 public:
  Updater(const Config& config, nn::Transformer& model, int threads);
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  /// Update `step` (from 1) on `pairs`. The report tells the step, not epoch and seconds. Throws NumbersError
  /// when the loss or the gradient norm is not finite; the weights are then as before.
  StepReport run(const data::ParallelCorpus& corpus, std::span<const std::int32_t> pairs, std::int64_t step);

  /// Bytes that the process will have resident at the peak of updates no larger than that of `pairs`: what it has after a
  /// dry run of the largest shard, what the other threads and shards will add, and `besides`. Changes nothing. Throws
  /// Error, which says what to change, when that is more than can be had.
  std::int64_t expected_memory(const data::ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                               std::int64_t besides = 0);

  const Tensor& first_moment() const { return first_moment_.tensor(); }
  const Tensor& second_moment() const { return second_moment_.tensor(); }
  /// The moving average of the weights; null where there is none. Begins as whoever trains fills it.
  const Tensor* average() const { return average_ ? &average_->tensor() : nullptr; }
  Schedule& schedule() { return schedule_; }
  const Schedule& schedule() const { return schedule_; }
  std::span<Worker> workers() { return workers_; }

  /// Counts time by op from now on; seconds are summed over threads for the passes of ops.
  void start_profile();
  /// Of all threads, since start_profile().
  Profile profile() const;

 private:
  Profile* own_profile() { return profiles_.empty() ? nullptr : &profiles_.back(); }

  const Config& config_;
  nn::Transformer& model_;
  Slab first_moment_, second_moment_;
  std::optional<Slab> average_;
  std::vector<Worker> workers_;
  GradientStep gradient_;
  HeadGates gates_;
  Adam adam_;
  Schedule schedule_;
  Arena scratch_;
  std::vector<Profile> profiles_;  ///< one a worker and that of what follows the gradients; empty: off
};

}  // namespace polyhead::train
