#include "batch.h"

#include <algorithm>

namespace polyhead::decode {

bool is_empty(TokenIds sentence) {
  return std::all_of(sentence.begin(), sentence.end(), [](std::int32_t id) { return id == eos_id; });
}

nn::TokenBatch pack(Arena& arena, std::span<const TokenIds> sentences) {
  auto* segments = arena.allocate<Segment>(sentences.size());
  std::int32_t rows = 0;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    segments[i] = {rows, static_cast<std::int32_t>(sentences[i].size())};
    rows += segments[i].length;
  }
  const Tensor ids = arena.tensor({rows}, DType::i32);
  for (std::size_t i = 0; i < sentences.size(); ++i)
    std::copy(sentences[i].begin(), sentences[i].end(), ids.as<std::int32_t>() + segments[i].begin);
  return {ids, {{segments, sentences.size()}, 0}};
}

nn::TokenBatch shift(Arena& arena, const nn::TokenBatch& targets) {
  const Tensor ids = arena.tensor(targets.ids.shape, DType::i32);
  for (const Segment& s : targets.segments.spans) {
    const auto* from = targets.ids.as<std::int32_t>() + s.begin;
    auto* to = ids.as<std::int32_t>() + s.begin;
    *to = bos_id;
    std::copy_n(from, s.length - 1, to + 1);
  }
  return {ids, targets.segments};
}

std::vector<Batch> cut(std::span<const std::int64_t> order, std::int64_t limit, int threads,
                       const std::function<std::int64_t(std::int64_t)>& cost) {
  constexpr std::int64_t smallest = 512;  // less does not keep the matrix products busy
  std::int64_t total = 0;
  for (const std::int64_t i : order) total += cost(i);
  if (threads > 1) limit = std::min(limit, std::max(smallest, total / (4 * std::int64_t{threads})));
  std::vector<Batch> batches;
  std::size_t begin = 0;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t next = cost(order[i]);
    if (i > begin && sum + next > limit) {
      batches.push_back(order.subspan(begin, i - begin));
      begin = i;
      sum = 0;
    }
    sum += next;
  }
  if (begin < order.size()) batches.push_back(order.subspan(begin));
  return batches;
}

}  // namespace polyhead::decode
