#include "polyhead/decode/score.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "batch.h"

namespace polyhead::decode {
namespace {

constexpr std::int64_t batch_tokens = 4096;

constexpr int most_named = 20;

void check(std::span<const TokenPair> pairs, int max_length) {
  std::int64_t wrong = 0;
  std::string named;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (const auto& [side, ids] : {std::pair{"source", pairs[i].source}, {"target", pairs[i].target}})
      if ((ids.empty() || ids.size() > static_cast<std::size_t>(max_length)) && ++wrong <= most_named)
        named += concat(wrong == 1 ? "" : ", ", side, ' ', i + 1, " has ", ids.size());
  if (wrong > most_named) named += concat(", and ", wrong - most_named, " more");
  require<DataError>(wrong == 0, "expected 1 to ", max_length, " tokens (model.max_length), but ", named);
}

/// The empty translation of an empty source, which the model is not asked about.
bool is_certain(const TokenPair& pair) { return is_empty(pair.source) && is_empty(pair.target); }

/// What the model gives every target token of a batch, end to end.
struct TokenScores {
  std::vector<double> losses;  ///< −log p
  std::span<const std::int32_t> predictions;
};

TokenScores token_scores(const nn::Transformer& model, Exec& exec, const nn::TokenBatch& sources,
                         const nn::TokenBatch& targets, const nn::AttentionHook* attention) {
  const Tensor losses = exec.activations.tensor(targets.ids.shape, model.parameters().dtype());
  const Tensor predictions = exec.activations.tensor(targets.ids.shape, DType::i32);
  Tape tape(exec, false);
  model.loss({.tape = tape, .parameters = model.parameters(), .attention = attention}, sources,
             shift(exec.activations, targets), targets.ids,
             {.token_loss = losses, .predictions = predictions});
  TokenScores result;
  result.predictions = predictions.span<std::int32_t>();
  dispatch(losses.dtype, [&]<class T>() {
    const auto values = losses.span<T>();
    result.losses.assign(values.begin(), values.end());
  });
  return result;
}

}  // namespace

std::vector<Score> score(const nn::Transformer& model, std::span<const TokenPair> pairs, int threads,
                         const Progress& progress, const AttentionHook& attention) {
  check(pairs, model.config().max_length);
  const auto size = [&](std::int64_t i) {
    const TokenPair& pair = pairs[static_cast<std::size_t>(i)];
    return static_cast<std::int64_t>(pair.source.size() + pair.target.size());
  };
  std::vector<Score> scores(pairs.size());
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (is_certain(pairs[i])) {
      scores[i].tokens.assign(pairs[i].target.size(), 0);
      scores[i].predictions.assign(pairs[i].target.begin(), pairs[i].target.end());
    } else {
      order.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (progress && order.size() < pairs.size())
    progress(static_cast<std::int64_t>(pairs.size() - order.size()));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return size(a) > size(b); });
  const std::vector<Batch> batches = cut(order, batch_tokens, threads, size);
  for_each_batch(batches, threads, progress, nullptr, [&](Exec& exec, Batch batch) {
    std::vector<TokenIds> sources, targets;
    for (const std::int64_t i : batch) {
      sources.push_back(pairs[static_cast<std::size_t>(i)].source);
      targets.push_back(pairs[static_cast<std::size_t>(i)].target);
    }
    const nn::AttentionHook hook = [&](const nn::AttentionCall& call) {
      return attention(call, {.sentences = batch});
    };
    const TokenScores of_batch = token_scores(model, exec, pack(exec.activations, sources),
                                              pack(exec.activations, targets), attention ? &hook : nullptr);
    auto loss = of_batch.losses.begin();
    auto prediction = of_batch.predictions.begin();
    for (std::size_t s = 0; s < batch.size(); ++s) {
      Score& result = scores[static_cast<std::size_t>(batch[s])];
      for (std::size_t t = 0; t < targets[s].size(); ++t, ++loss) {
        result.tokens.push_back(-*loss);
        result.log_probability -= *loss;
      }
      result.predictions.assign(prediction, prediction + static_cast<std::ptrdiff_t>(targets[s].size()));
      prediction += static_cast<std::ptrdiff_t>(targets[s].size());
      require<NumbersError>(std::isfinite(result.log_probability), "pair ", batch[s] + 1,
                            ": its log-probability is not finite");
    }
  });
  return scores;
}

}  // namespace polyhead::decode
