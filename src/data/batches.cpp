#include "polyhead/data/batches.h"

#include <algorithm>
#include <numeric>

#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"

namespace polyhead::data {
namespace {

/// Pairs sorted together: enough that a batch's lengths hardly differ, few enough that batches differ by
/// epoch.
constexpr std::size_t pool_size = 16384;

/// Stable, so that pairs of equal lengths keep their shuffled order.
void sort_by_length(const ParallelCorpus& corpus, std::span<std::int32_t> pairs) {
  std::stable_sort(pairs.begin(), pairs.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(corpus.target_length(a), corpus.source_length(a)) <
           std::pair(corpus.target_length(b), corpus.source_length(b));
  });
}

std::vector<std::int32_t> all_pairs(const ParallelCorpus& corpus) {
  std::vector<std::int32_t> pairs(static_cast<std::size_t>(corpus.size()));
  std::iota(pairs.begin(), pairs.end(), 0);
  return pairs;
}

}  // namespace

void BatchPlan::cut(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                    std::int64_t batch_tokens) {
  require(batch_tokens >= 1, "training.batch_tokens: ", batch_tokens, ", expected at least 1");
  std::int64_t tokens = 0;
  for (const std::int32_t pair : pairs) {
    const std::int64_t length = corpus.target_length(pair);
    if (tokens > 0 && tokens + length > batch_tokens) {
      offsets_.push_back(static_cast<std::int64_t>(order_.size()));
      tokens = 0;
    }
    order_.push_back(pair);
    tokens += length;
  }
  if (tokens > 0) offsets_.push_back(static_cast<std::int64_t>(order_.size()));
}

BatchPlan BatchPlan::training(const ParallelCorpus& corpus, std::int64_t batch_tokens, std::uint64_t seed,
                              std::uint64_t epoch) {
  const RngKey key = RngKey{seed}.fold("batches").fold(epoch);
  RandomStream pair_order(key.fold("pairs"));
  std::vector<std::int32_t> pairs = all_pairs(corpus);
  shuffle(pairs, pair_order);
  BatchPlan sorted;
  for (std::size_t begin = 0; begin < pairs.size(); begin += pool_size) {
    const auto pool = std::span(pairs).subspan(begin, std::min(pool_size, pairs.size() - begin));
    sort_by_length(corpus, pool);
    sorted.cut(corpus, pool, batch_tokens);
  }
  std::vector<std::int64_t> batches(static_cast<std::size_t>(sorted.size()));
  std::iota(batches.begin(), batches.end(), 0);
  RandomStream batch_order(key.fold("order"));
  shuffle(batches, batch_order);
  BatchPlan plan;
  for (const std::int64_t i : batches) {
    const auto batch = sorted[i];
    plan.order_.insert(plan.order_.end(), batch.begin(), batch.end());
    plan.offsets_.push_back(static_cast<std::int64_t>(plan.order_.size()));
  }
  return plan;
}

std::span<const std::int32_t> BatchPlan::largest(const ParallelCorpus& corpus) const {
  std::int64_t best = 0, most = -1;
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int64_t tokens = count_tokens(corpus, (*this)[i]).both();
    if (tokens > most) best = i, most = tokens;
  }
  return (*this)[best];
}

BatchPlan BatchPlan::validation(const ParallelCorpus& corpus, std::int64_t batch_tokens) {
  std::vector<std::int32_t> pairs = all_pairs(corpus);
  sort_by_length(corpus, pairs);
  BatchPlan plan;
  plan.cut(corpus, pairs, batch_tokens);
  return plan;
}

}  // namespace polyhead::data
