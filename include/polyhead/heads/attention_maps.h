#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "polyhead/decode/score.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/train/head_gates.h"

namespace polyhead::heads {

/// One attention head of a model.
struct Head {
  nn::AttentionSite site;
  int head = 0;
  friend bool operator==(const Head&, const Head&) = default;
};

/// The encoder's heads layer by layer, then the decoder's of self-attention, then those of cross-attention.
std::vector<Head> all_heads(const nn::ModelConfig& config);
using train::path;

/// The attention weights of one head over one sentence pair: a row a query position, a column a key position. A row
/// sums to 1.
class AttentionMap {
 public:
  /// `weights` row by row. Throws Error unless they are queries·keys.
  AttentionMap(std::int64_t queries, std::int64_t keys, std::vector<double> weights);
  std::int64_t queries() const { return queries_; }
  std::int64_t keys() const { return keys_; }
  std::span<const double> row(std::int64_t query) const {
    return std::span(weights_).subspan(static_cast<std::size_t>(query * keys_),
                                       static_cast<std::size_t>(keys_));
  }
  double operator()(std::int64_t query, std::int64_t key) const {
    return weights_[static_cast<std::size_t>(query * keys_ + key)];
  }

 private:
  std::int64_t queries_, keys_;
  std::vector<double> weights_;
};

/// The attention of a model over sentence pairs, the given target as the decoder's input: keys and queries of the
/// source are its ids, eos last; those of the target are bos and its ids without the last.
/// Model and ids must outlive it.
class AttentionMaps {
 public:
  /// Throws DataError when a side is empty or longer than the model's max_length.
  AttentionMaps(const nn::Transformer& model, std::span<const decode::TokenPair> pairs);

  /// Pairs that are read together. Which these are depends on the pairs alone.
  std::int64_t batches() const { return static_cast<std::int64_t>(begins_.size()) - 1; }

  /// Told the number of a batch, that of a pair in it, and the maps of all_heads() in that order, which are gone
  /// afterwards.
  using Visit =
      std::function<void(std::int64_t batch, std::int64_t pair, std::span<const AttentionMap> maps)>;
  /// Visits every pair; those of a batch in order and on one thread, several batches at once.
  void visit(int threads, const Visit& visit, const decode::Progress& progress = {}) const;

  /// Adds up what `empty` measures: Statistics::add(pair, maps) of every pair and Statistics::merge(other) of what
  /// comes next. The result does not depend on `threads`.
  template <class Statistics>
  Statistics gather(const Statistics& empty, int threads, const decode::Progress& progress = {}) const {
    std::vector<Statistics> parts(static_cast<std::size_t>(batches()), empty);
    visit(
        threads,
        [&](std::int64_t batch, std::int64_t pair, std::span<const AttentionMap> maps) {
          parts[static_cast<std::size_t>(batch)].add(pair, maps);
        },
        progress);
    Statistics total = empty;
    for (const Statistics& part : parts) total.merge(part);
    return total;
  }

 private:
  void visit_batch(std::int64_t batch, Exec& exec, const Visit& visit) const;

  const nn::Transformer& model_;
  std::span<const decode::TokenPair> pairs_;
  std::vector<std::int64_t> begins_;  // of batches, and the end of the last
};

}  // namespace polyhead::heads
