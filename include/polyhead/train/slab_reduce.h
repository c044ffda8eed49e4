#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "polyhead/tensor/arena.h"

namespace polyhead::train {

/// What a shard adds to its step besides the gradient. Losses are sums over target tokens, in nats.
struct ShardTotals {
  double loss = 0;                     ///< label-smoothed
  double negative_log_likelihood = 0;  ///< unsmoothed
  double tokens = 0;                   ///< target tokens, end tokens included
  double correct = 0;                  ///< of which predicted right
  /// Of heads on subspace, position and output, times the tokens; see train/disagreement.h.
  std::array<double, 3> disagreement{};
  ShardTotals& operator+=(const ShardTotals& other);
  friend bool operator==(const ShardTotals&, const ShardTotals&) = default;
};

/// The sum of the gradients of n shards in one fixed binary tree: 0+1, 2+3, ...; then 01+23, ...; a node
/// without a right sibling passes up as it is. Shards may be completed by any threads in any order; the bits
/// depend on n and the contents alone, and 8 shards twice are the tree of 16. Whoever completes the second of
/// two siblings adds them, so that about as many slabs are in use as there are threads plus levels. Nothing
/// is allocated after construction.
///
///     reduction.begin(n);
///     gradients = reduction.acquire(i);  ... add into gradients ...;  reduction.complete(i, totals);  // any thread
///     reduction.gradients(), reduction.totals();                                                     // after all
class TreeReduction {
 public:
  /// For at most `max_shards` gradients of `size` elements. Slabs that are never used cost address space
  /// only.
  TreeReduction(std::int64_t max_shards, std::int64_t size, DType dtype);
  /// Starts a step of 1 ... max_shards shards; Error for others. What an unfinished step holds is dropped.
  void begin(std::int64_t shards);
  /// The gradient of shard i, all zero; its until complete(i). Each shard is acquired and completed once a
  /// step, else Error.
  Tensor acquire(std::int64_t shard);
  void complete(std::int64_t shard, const ShardTotals& totals);
  /// Of all shards; Error before the last is complete. Valid until the next begin().
  const Tensor& gradients() const;
  const ShardTotals& totals() const;
  /// Bytes of the slabs that steps of max_shards on `threads` threads touch: besides those being worked on, one waits at
  /// each level of the tree.
  std::int64_t touched_bytes(std::int64_t threads) const;

 private:
  enum class State { untouched, acquired, summing, waiting, merged };
  /// The sum of shards i ... i + width − 1 (as far as there are as many), at index i.
  struct Node {
    State state = State::untouched;
    std::int64_t slab = 0;
    std::int64_t width = 0;  ///< of a waiting node: what it has summed; it waits for its sibling
    ShardTotals totals;
  };
  Node& at(std::int64_t shard) { return nodes_[static_cast<std::size_t>(shard)]; }
  const Tensor& slab(std::int64_t index) const { return slabs_[static_cast<std::size_t>(index)].tensor(); }
  void merge(Node& left, Node& right);
  const Node& root() const;

  std::vector<Slab> slabs_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t>
      free_;          // slabs; the last given back is taken first, as its pages are there already
  std::mutex mutex_;  // guards free_ and the states, slabs and widths of nodes_
  std::int64_t shards_ = 0;
};

}  // namespace polyhead::train
