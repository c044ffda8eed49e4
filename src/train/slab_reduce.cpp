#include "polyhead/train/slab_reduce.h"

#include <algorithm>
#include <bit>

#include "polyhead/core/memory.h"

namespace polyhead::train {

ShardTotals& ShardTotals::operator+=(const ShardTotals& other) {
  loss += other.loss;
  negative_log_likelihood += other.negative_log_likelihood;
  tokens += other.tokens;
  correct += other.correct;
  for (std::size_t i = 0; i < disagreement.size(); ++i) disagreement[i] += other.disagreement[i];
  return *this;
}

TreeReduction::TreeReduction(std::int64_t max_shards, std::int64_t size, DType dtype) {
  require(max_shards >= 1, "a sum of at most ", max_shards, " shards, expected at least 1");
  const auto count = static_cast<std::size_t>(max_shards);
  slabs_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) slabs_.emplace_back(Shape{size}, dtype);
  nodes_.resize(count);
  free_.reserve(count);
}

void TreeReduction::begin(std::int64_t shards) {
  const auto max_shards = static_cast<std::int64_t>(slabs_.size());
  require(shards >= 1 && shards <= max_shards, "a step of ", shards, " shards, expected 1 to ", max_shards);
  shards_ = shards;
  std::fill(nodes_.begin(), nodes_.end(), Node{});
  free_.clear();
  for (std::int64_t i = max_shards; i-- > 0;) free_.push_back(i);
}

Tensor TreeReduction::acquire(std::int64_t shard) {
  require(shard >= 0 && shard < shards_, "shard ", shard, ", expected 0 to ", shards_ - 1);
  Tensor gradients;
  {
    const std::lock_guard lock(mutex_);
    Node& node = at(shard);
    require(node.state == State::untouched, "shard ", shard, " was acquired twice in a step");
    node.state = State::acquired;
    node.slab = free_.back();
    free_.pop_back();
    gradients = slab(node.slab);
  }
  fill_zero(gradients);
  return gradients;
}

void TreeReduction::complete(std::int64_t shard, const ShardTotals& totals) {
  require(shard >= 0 && shard < shards_, "shard ", shard, ", expected 0 to ", shards_ - 1);
  {
    const std::lock_guard lock(mutex_);
    require(at(shard).state == State::acquired, "shard ", shard, " was completed but is not being worked on");
    at(shard).state = State::summing;
  }
  at(shard).totals = totals;
  std::int64_t index = shard, width = 1;
  for (; width < shards_; width *= 2) {
    const std::int64_t sibling = index / width % 2 == 0 ? index + width : index - width;
    if (sibling >= shards_) continue;
    {
      const std::lock_guard lock(mutex_);
      Node& other = at(sibling);
      if (other.state != State::waiting || other.width != width) {
        at(index).state = State::waiting;
        at(index).width = width;
        return;
      }
      other.state = State::summing;
    }
    merge(at(std::min(index, sibling)), at(std::max(index, sibling)));
    index = std::min(index, sibling);
  }
  const std::lock_guard lock(mutex_);
  nodes_[0].state = State::waiting;
  nodes_[0].width = width;
}

void TreeReduction::merge(Node& left, Node& right) {
  dispatch(slab(left.slab).dtype, [&]<class T>() {
    T* sum = slab(left.slab).as<T>();
    const T* addend = slab(right.slab).as<T>();
    const std::int64_t size = slab(left.slab).size();
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) sum[i] += addend[i];
  });
  left.totals += right.totals;
  const std::lock_guard lock(mutex_);
  right.state = State::merged;
  free_.push_back(right.slab);
}

const TreeReduction::Node& TreeReduction::root() const {
  const Node& node = nodes_[0];
  require(shards_ > 0 && node.state == State::waiting && node.width >= shards_,
          "the sum of a step was read before all of its ", shards_, " shards were complete");
  return node;
}

const Tensor& TreeReduction::gradients() const { return slab(root().slab); }

std::int64_t TreeReduction::touched_bytes(std::int64_t threads) const {
  const auto max_shards = static_cast<std::int64_t>(slabs_.size());
  const auto levels = static_cast<std::int64_t>(std::bit_width(slabs_.size() - 1));
  return std::min(max_shards, threads + levels) * in_huge_pages(static_cast<std::int64_t>(slab(0).bytes()));
}

const ShardTotals& TreeReduction::totals() const { return root().totals; }

}  // namespace polyhead::train
