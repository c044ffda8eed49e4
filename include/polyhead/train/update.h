#pragma once

#include <optional>
#include <span>
#include <vector>

#include "polyhead/data/batches.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/ops/half_precision.h"
#include "polyhead/train/config.h"
#include "polyhead/train/disagreement.h"
#include "polyhead/train/head_gates.h"
#include "polyhead/train/slab_reduce.h"

namespace polyhead::train {

/// Arenas and buffers of one worker thread.
class Worker {
 public:
  /// Packs `pairs` and computes their loss; with `gradients` (a slab) its gradient is added there. Rewinds what it took.
  /// `first` is the number of pairs[0] within the update, `key` the update's randomness; `half` for mixed precision,
  /// `gates` where heads have learned ones, `disagreement` where the loss has it.
  ShardTotals run(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                  std::span<const std::int32_t> pairs, std::int32_t first, double label_smoothing, RngKey key,
                  const Tensor& gradients, const HalfPrecision* half = nullptr,
                  const HeadGates* gates = nullptr, const Disagreement* disagreement = nullptr);
  /// Counts time by op from now on in `profile`, where not null.
  void set_profile(Profile* profile) { profile_ = profile; }
  Profile* profile() const { return profile_; }
  /// The bytes of address space that it has.
  std::size_t capacity() const { return activations_.capacity() + scratch_.capacity(); }
  /// The most bytes ever taken.
  std::size_t peak_bytes() const { return activations_.peak() + scratch_.peak(); }

 private:
  Arena activations_, scratch_;
  Profile* profile_ = nullptr;
};

/// What this machine trains in where `wanted` is asked for: f32 where it has no products of bf16.
Precision available(Precision wanted);

/// The gradient of an update: its pairs are cut into shards, each runs forward and backward alone on one thread, and the
/// shards' gradients are added in a fixed tree. The bits depend on the number of shards, never on the threads. Nothing
/// is allocated after the first step.
class GradientStep {
 public:
  /// Runs on as many threads as there are workers, and at most on one a shard; in f32 where the machine has no bf16.
  GradientStep(const nn::Transformer& model, int shards, Precision precision, std::span<Worker> workers,
               const DisagreementConfig& disagreement = {});
  /// Runs the largest shard of `pairs` on one thread, for what that takes of memory: what the first update will find
  /// ready. Returns the bytes that the other threads and shards will add.
  std::int64_t dry_run(const data::ParallelCorpus& corpus, std::span<const std::int32_t> pairs);
  /// Gradients and totals of `pairs`, summed over target tokens. Valid until the next call.
  const TreeReduction& run(const data::ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                           double label_smoothing, RngKey key);

 private:
  const nn::Transformer& model_;
  HeadGates gates_;
  Disagreement disagreement_;
  std::span<Worker> workers_;
  std::vector<std::span<const std::int32_t>> shards_;
  TreeReduction reduction_;
  std::optional<Slab> copies_;  ///< bf16 weights of mixed precision
  std::optional<HalfPrecision> refresh_copies() const;
};

/// Loss and accuracy over a whole corpus, without gradients: unsmoothed, in nats per target token.
ShardTotals evaluate_loss(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                          std::int64_t batch_tokens, std::span<Worker> workers);

}  // namespace polyhead::train
