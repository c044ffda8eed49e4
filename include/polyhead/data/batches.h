#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyhead/data/corpus.h"
#include "polyhead/tensor/segments.h"

namespace polyhead::data {

/// The batches of one pass over a corpus: every pair is in exactly one of them, no batch is empty.
class BatchPlan {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  /// Pair indices of batch `i`.
  std::span<const std::int32_t> operator[](std::int64_t i) const {
    const auto begin = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(i)]);
    const auto end = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(i) + 1]);
    return std::span(order_).subspan(begin, end - begin);
  }

  /// Training: all pairs shuffled by (seed, epoch), sorted by (target, source) length within pools of many
  /// pairs, cut into batches of at most `batch_tokens` target tokens (end tokens counted; a longer sentence
  /// is a batch of its own), and the batches shuffled. A function of its arguments alone. Throws Error when
  /// batch_tokens < 1.
  static BatchPlan training(const ParallelCorpus& corpus, std::int64_t batch_tokens, std::uint64_t seed,
                            std::uint64_t epoch);
  /// The batch of the most tokens.
  std::span<const std::int32_t> largest(const ParallelCorpus& corpus) const;
  /// Validation: the whole corpus in order of (target, source) length, the same each time.
  static BatchPlan validation(const ParallelCorpus& corpus, std::int64_t batch_tokens);

 private:
  void cut(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs, std::int64_t batch_tokens);
  std::vector<std::int32_t> order_;
  std::vector<std::int64_t> offsets_{0};
};

/// Room that pack() fills; the spans may be longer than needed.
struct PackBuffers {
  std::span<std::int32_t> source, target_input, target_output;
  std::span<Segment> source_segments, target_segments;
};

/// Sentences laid end to end, no padding. With S source and T target tokens in n sentences:
/// source [S] = ids, eos; target_input [T] = bos, ids; target_output [T] = ids, eos; segments [n] each.
struct PackedBatch {
  std::span<const std::int32_t> source, target_input, target_output;
  std::span<const Segment> source_segments, target_segments;
};

/// Tokens of some pairs, end tokens counted.
struct TokenCount {
  std::int64_t source = 0, target = 0;
  std::int64_t both() const { return source + target; }
  friend bool operator==(const TokenCount&, const TokenCount&) = default;
};
TokenCount count_tokens(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs);

/// Packs `pairs` into `buffers` without allocating. Throws Error when a buffer is too short.
PackedBatch pack(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                 const PackBuffers& buffers);

/// Cuts `pairs` into shards.size() contiguous parts: shard k ends at the pair whose end is nearest to
/// (k + 1)/n of all tokens (source and target). Some are empty when there are fewer pairs than shards.
/// Does not allocate.
void cut_shards(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                std::span<std::span<const std::int32_t>> shards);

}  // namespace polyhead::data
