#include "polyhead/heads/attention_maps.h"

#include <algorithm>
#include <numeric>

#include "decode/batch.h"
#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

/// Most tokens of both sides that are read together: enough for the matrix products, few enough to keep all weights.
constexpr std::int64_t batch_tokens = 2048;

std::int64_t longest(const Segments& segments) {
  std::int64_t most = 0;
  for (const Segment& s : segments.spans) most = std::max<std::int64_t>(most, s.length);
  return most;
}

/// The weights of all attentions of one forward pass.
struct Tap {
  struct Site {
    nn::AttentionSite site;
    Tensor weights;
    Segments queries, keys;
  };
  std::vector<Site> sites;

  nn::AttentionHook hook(Exec& exec, DType dtype) {
    return [this, &exec, dtype](const nn::AttentionCall& call) {
      const Shape shape{call.queries.rows(), call.heads, longest(call.keys)};
      sites.push_back({call.site, exec.activations.tensor(shape, dtype), call.queries, call.keys});
      return nn::AttentionInputs{.weights = sites.back().weights};
    };
  }

  AttentionMap map(const Head& head, std::int64_t sentence) const {
    const auto site =
        std::find_if(sites.begin(), sites.end(), [&](const Site& s) { return s.site == head.site; });
    const Segment &queries = site->queries[sentence], &keys = site->keys[sentence];
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(std::int64_t{queries.length} * keys.length));
    dispatch(site->weights.dtype, [&]<class T>() {
      const Shape& shape = site->weights.shape;
      for (std::int64_t i = 0; i < queries.length; ++i) {
        const T* row = site->weights.as<T>() + ((queries.begin + i) * shape[1] + head.head) * shape[2];
        values.insert(values.end(), row, row + keys.length);
      }
    });
    return {queries.length, keys.length, std::move(values)};
  }
};

}  // namespace

std::vector<Head> all_heads(const nn::ModelConfig& config) {
  std::vector<Head> heads;
  for (const nn::AttentionKind kind : nn::attention_kinds)
    for (int layer = 0; layer < config.layers(kind); ++layer)
      for (int head = 0; head < config.heads.at({kind, layer}); ++head)
        heads.push_back({{kind, layer}, head});
  return heads;
}

AttentionMap::AttentionMap(std::int64_t queries, std::int64_t keys, std::vector<double> weights)
    : queries_(queries), keys_(keys), weights_(std::move(weights)) {
  require(queries >= 0 && keys >= 0 && static_cast<std::int64_t>(weights_.size()) == queries * keys,
          "attention map: ", weights_.size(), " weights, expected ", queries, " rows of ", keys);
}

AttentionMaps::AttentionMaps(const nn::Transformer& model, std::span<const decode::TokenPair> pairs)
    : model_(model), pairs_(pairs) {
  const auto most = static_cast<std::size_t>(model.config().max_length);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (const std::size_t length : {pairs[i].source.size(), pairs[i].target.size()})
      require<DataError>(length >= 1 && length <= most, "pair ", i + 1, " has a side of ", length,
                         " tokens, expected 1 to ", most, " (model.max_length)");
  std::vector<std::int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  begins_.push_back(0);
  for (const decode::Batch batch : decode::cut(order, batch_tokens, 1, [&](std::int64_t i) {
         const decode::TokenPair& pair = pairs[static_cast<std::size_t>(i)];
         return static_cast<std::int64_t>(pair.source.size() + pair.target.size());
       }))
    begins_.push_back(batch.back() + 1);
}

void AttentionMaps::visit(int threads, const Visit& visit, const decode::Progress& progress) const {
  std::vector<std::int64_t> pairs(pairs_.size());
  std::iota(pairs.begin(), pairs.end(), std::int64_t{0});
  std::vector<decode::Batch> each;
  for (std::size_t i = 0; i + 1 < begins_.size(); ++i)
    each.emplace_back(pairs.data() + begins_[i], pairs.data() + begins_[i + 1]);
  decode::for_each_batch(each, threads, progress, nullptr, [&](Exec& exec, decode::Batch batch) {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), batch.front());
    visit_batch(after - begins_.begin() - 1, exec, visit);
  });
}

void AttentionMaps::visit_batch(std::int64_t batch, Exec& exec, const Visit& visit) const {
  const std::int64_t begin = begins_[static_cast<std::size_t>(batch)],
                     end = begins_[static_cast<std::size_t>(batch) + 1];
  std::vector<decode::TokenIds> source_ids, target_ids;
  for (std::int64_t i = begin; i < end; ++i) {
    source_ids.push_back(pairs_[static_cast<std::size_t>(i)].source);
    target_ids.push_back(pairs_[static_cast<std::size_t>(i)].target);
  }
  const nn::TokenBatch sources = decode::pack(exec.activations, source_ids),
                       targets = decode::pack(exec.activations, target_ids);
  Tap tap;
  const nn::AttentionHook hook = tap.hook(exec, model_.parameters().dtype());
  Tape tape(exec, false);
  const nn::Context context{.tape = tape, .parameters = model_.parameters(), .attention = &hook};
  model_.decode(context, decode::shift(exec.activations, targets), model_.encode(context, sources),
                sources.segments);
  const std::vector<Head> heads = all_heads(model_.config());
  std::vector<AttentionMap> maps;
  for (std::int64_t s = 0; s < end - begin; ++s) {
    maps.clear();
    for (const Head& head : heads) maps.push_back(tap.map(head, s));
    visit(batch, begin + s, maps);
  }
}

}  // namespace polyhead::heads
