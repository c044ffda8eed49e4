#include "polyhead/heads/importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decode/batch.h"
#include "polyhead/core/error.h"
#include "polyhead/heads/masking.h"
#include "polyhead/heads/output_figures.h"

namespace polyhead::heads {
namespace {

/// Most tokens of both sides of a batch; batches depend on the pairs alone.
constexpr std::int64_t gradient_batch_tokens = 2048;

std::size_t index_of(std::span<const Head> heads, const nn::AttentionSite& site, std::int64_t head) {
  const auto at = std::find(heads.begin(), heads.end(), Head{site, static_cast<int>(head)});
  return static_cast<std::size_t>(at - heads.begin());
}

/// Σ over the sentences of a batch of |∂L/∂ξ_h|.
std::vector<double> batch_importance(const nn::Transformer& model, Exec& exec, std::span<const Head> heads,
                                     std::span<const decode::TokenIds> source_ids,
                                     std::span<const decode::TokenIds> target_ids) {
  const nn::TokenBatch sources = decode::pack(exec.activations, source_ids),
                       targets = decode::pack(exec.activations, target_ids);
  const DType dtype = model.parameters().dtype();
  std::vector<std::pair<nn::AttentionSite, Tensor>> gradients;
  const nn::AttentionHook hook = [&](const nn::AttentionCall& call) {
    const Shape shape{call.queries.count(), call.heads};
    const Tensor gates = exec.activations.tensor(shape, dtype),
                 gradient = exec.activations.zeros(shape, dtype);
    dispatch(dtype, [&]<class T>() { std::ranges::fill(gates.span<T>(), T{1}); });
    gradients.emplace_back(call.site, gradient);
    return nn::AttentionInputs{.gates = call.tape.leaf(gates, gradient)};
  };
  Tape tape(exec, true);
  tape.backward(model.loss({.tape = tape, .parameters = model.parameters(), .attention = &hook}, sources,
                           decode::shift(exec.activations, targets), targets.ids, {}));
  std::vector<double> sums(heads.size());
  for (const auto& of_site : gradients)
    dispatch(dtype, [&]<class T>() {
      const auto count = static_cast<std::size_t>(of_site.second.cols());
      const std::size_t first = index_of(heads, of_site.first, 0);
      const auto values = of_site.second.template span<T>();
      for (std::size_t i = 0; i < values.size(); ++i)
        sums[first + i % count] += std::abs(static_cast<double>(values[i]));
    });
  return sums;
}

std::vector<double> normalized(std::span<const Head> heads, std::span<const double> importance) {
  std::vector<double> result(heads.size());
  for (std::size_t h = 0; h < heads.size(); ++h) {
    double sum = 0;
    for (std::size_t other = 0; other < heads.size(); ++other)
      if (heads[other].site == heads[h].site) sum += importance[other] * importance[other];
    result[h] = sum > 0 ? importance[h] / std::sqrt(sum) : 0;
  }
  return result;
}

}  // namespace

double loss(std::span<const decode::Score> scores) {
  double sum = 0, tokens = 0;
  for (const decode::Score& score : scores) {
    sum -= score.log_probability;
    tokens += static_cast<double>(score.tokens.size());
  }
  return sum / tokens;
}

std::vector<double> importance(const nn::Transformer& model, std::span<const decode::TokenPair> pairs,
                               int threads, const decode::Progress& progress) {
  require<DataError>(!pairs.empty(), "importance of heads: no sentence pairs");
  const std::vector<Head> heads = all_heads(model.config());
  std::vector<std::int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const std::vector<decode::Batch> batches =
      decode::cut(order, gradient_batch_tokens, 1, [&](std::int64_t i) {
        const decode::TokenPair& pair = pairs[static_cast<std::size_t>(i)];
        return static_cast<std::int64_t>(pair.source.size() + pair.target.size());
      });
  std::vector<std::vector<double>> sums(batches.size());
  decode::for_each_batch(batches, threads, progress, nullptr, [&](Exec& exec, decode::Batch batch) {
    std::vector<decode::TokenIds> sources, targets;
    for (const std::int64_t i : batch) {
      sources.push_back(pairs[static_cast<std::size_t>(i)].source);
      targets.push_back(pairs[static_cast<std::size_t>(i)].target);
    }
    const auto at = std::find_if(batches.begin(), batches.end(),
                                 [&](const decode::Batch& other) { return other.front() == batch.front(); });
    sums[static_cast<std::size_t>(at - batches.begin())] =
        batch_importance(model, exec, heads, sources, targets);
  });
  std::vector<double> result(heads.size());
  for (const std::vector<double>& of_batch : sums)
    for (std::size_t h = 0; h < heads.size(); ++h) result[h] += of_batch[h];
  for (std::size_t h = 0; h < heads.size(); ++h) {
    result[h] /= static_cast<double>(pairs.size());
    require<NumbersError>(std::isfinite(result[h]),
                          "importance of a head is not finite: ", nn::name(heads[h].site.kind), " layer ",
                          heads[h].site.layer, " head ", heads[h].head);
  }
  return result;
}

HeadFigures head_figures(const nn::Transformer& model, const TokenKnowledge& tokens, int threads,
                         const decode::Progress& progress) {
  const std::span<const decode::TokenPair> pairs = tokens.pairs;
  HeadFigures figures{.heads = all_heads(model.config())};
  figures.importance = importance(model, pairs, threads, progress);
  figures.importance_normalized = normalized(figures.heads, figures.importance);
  const WeightStatistics weights =
      AttentionMaps(model, pairs).gather(WeightStatistics(figures.heads, tokens), threads, progress);
  const Outputs outputs = measure_outputs(model, figures.heads, pairs, threads, progress);
  const double whole = loss(decode::score(model, pairs, threads, progress));
  const Masking masking(model, MaskMethod::zero);
  for (std::size_t h = 0; h < figures.heads.size(); ++h) {
    figures.confidence.push_back(weights.figures(h).confidence);
    figures.output_norm.push_back(outputs.figures[h].output_norm);
    figures.leave_one_out.push_back(
        loss(decode::score(model, pairs, threads, progress, masking.hook({figures.heads[h]}))) - whole);
  }
  return figures;
}

}  // namespace polyhead::heads
