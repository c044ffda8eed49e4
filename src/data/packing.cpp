#include <algorithm>

#include "polyhead/core/error.h"
#include "polyhead/data/batches.h"

namespace polyhead::data {
namespace {

std::int64_t tokens_of(const ParallelCorpus& corpus, std::int32_t pair) {
  return std::int64_t{corpus.source_length(pair)} + corpus.target_length(pair);
}

}  // namespace

TokenCount count_tokens(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs) {
  TokenCount count;
  for (const std::int32_t pair : pairs) {
    count.source += corpus.source_length(pair);
    count.target += corpus.target_length(pair);
  }
  return count;
}

PackedBatch pack(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                 const PackBuffers& buffers) {
  const TokenCount count = count_tokens(corpus, pairs);
  const auto sources = static_cast<std::size_t>(count.source),
             targets = static_cast<std::size_t>(count.target);
  require(sources <= buffers.source.size() && targets <= buffers.target_input.size() &&
              targets <= buffers.target_output.size() && pairs.size() <= buffers.source_segments.size() &&
              pairs.size() <= buffers.target_segments.size(),
          "pack: ", pairs.size(), " pairs of ", sources, " source and ", targets,
          " target tokens do not fit buffers for ",
          std::min(buffers.source_segments.size(), buffers.target_segments.size()), " pairs of ",
          buffers.source.size(), " source and ",
          std::min(buffers.target_input.size(), buffers.target_output.size()), " target tokens");
  std::int32_t source_begin = 0, target_begin = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto source = corpus.source(pairs[i]), target = corpus.target(pairs[i]);
    std::copy(source.begin(), source.end(), buffers.source.begin() + source_begin);
    std::copy(target.begin(), target.end(), buffers.target_output.begin() + target_begin);
    const auto input = buffers.target_input.begin() + target_begin;
    *input = text::bos_id;
    std::copy(target.begin(), target.end() - 1, input + 1);
    buffers.source_segments[i] = {source_begin, corpus.source_length(pairs[i])};
    buffers.target_segments[i] = {target_begin, corpus.target_length(pairs[i])};
    source_begin += corpus.source_length(pairs[i]);
    target_begin += corpus.target_length(pairs[i]);
  }
  return {buffers.source.first(sources), buffers.target_input.first(targets),
          buffers.target_output.first(targets), buffers.source_segments.first(pairs.size()),
          buffers.target_segments.first(pairs.size())};
}

void cut_shards(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                std::span<std::span<const std::int32_t>> shards) {
  const auto n = static_cast<std::int64_t>(shards.size());
  const std::int64_t total = count_tokens(corpus, pairs).both();
  std::size_t begin = 0, end = 0;
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    // In units of 1/n token, so that shard ends are exact.
    const std::int64_t goal = (k + 1) * total;
    while (end < pairs.size()) {
      const std::int64_t tokens = tokens_of(corpus, pairs[end]);
      const bool closer = (before + tokens) * n - goal <= goal - before * n;
      if (!closer) break;
      before += tokens;
      ++end;
    }
    shards[static_cast<std::size_t>(k)] = pairs.subspan(begin, end - begin);
    begin = end;
  }
}

}  // namespace polyhead::data
