#include "polyhead/heads/importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decode/batch.h"
#include "polyhead/core/error.h"
#include "polyhead/heads/masking.h"

namespace polyhead::heads {
namespace {

/// Most tokens of both sides of a batch; batches depend on the pairs alone.
constexpr std::int64_t gradient_batch_tokens = 2048;

std::size_t index_of(std::span<const Head> heads, const nn::AttentionSite& site, std::int64_t head) {
  const auto at = std::find(heads.begin(), heads.end(), Head{site, static_cast<int>(head)});
  return static_cast<std::size_t>(at - heads.begin());
}

std::int64_t longest_of(const Segments& segments) {
  std::int64_t most = 0;
  for (const Segment& s : segments.spans) most = std::max<std::int64_t>(most, s.length);
  return most;
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

/// Confidence and norm of the output of one sentence: sums over its rows.
struct RowSums {
  std::vector<double> confidence, norm;
  std::vector<double> rows;
  explicit RowSums(std::size_t heads) : confidence(heads), norm(heads), rows(heads) {}
};

/// What a hook measures on the sentences of a text; sentences are measured by one thread each.
class RowMeasures {
 public:
  RowMeasures(const nn::Transformer& model, std::span<const Head> heads, std::size_t sentences)
      : model_(model), heads_(heads), sums_(sentences, RowSums(heads.size())) {}

  nn::AttentionInputs inputs(const nn::AttentionCall& call, const decode::QueryRows& rows) {
    const Tensor weights = call.tape.exec().activations.tensor(
        {call.queries.rows(), call.heads, longest_of(call.keys)}, model_.parameters().dtype());
    return {.weights = weights,
            .observe = [this, weights, site = call.site, queries = call.queries, keys = call.keys,
                        sentences = rows.sentences](const nn::AttentionFlow& flow) {
              for (std::int64_t s = 0; s < queries.count(); ++s)
                dispatch(weights.dtype, [&]<class T>() {
                  add<T>(sums_[static_cast<std::size_t>(sentences[static_cast<std::size_t>(s)])], site,
                         queries[s], keys[s].length, weights, flow.output.value());
                });
            }};
  }

  RowSums total() const {
    RowSums total(heads_.size());
    for (const RowSums& s : sums_)
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        total.confidence[h] += s.confidence[h];
        total.norm[h] += s.norm[h];
        total.rows[h] += s.rows[h];
      }
    return total;
  }

 private:
  template <class T>
  void add(RowSums& sums, const nn::AttentionSite& site, const Segment& queries, std::int64_t keys,
           const Tensor& weights, const Tensor& output) const {
    const std::int64_t heads = weights.shape[1], stride = weights.shape[2];
    // The decoder's keys are bos and tokens; the source's last key is its end token.
    const std::int64_t counted = site.kind == nn::AttentionKind::decoder ? keys : keys - 1;
    const std::size_t first = index_of(heads_, site, 0);
    for (std::int64_t row = queries.begin; row < queries.begin + queries.length; ++row)
      for (std::int64_t a = 0; a < heads; ++a) {
        const T* w = weights.as<T>() + (row * heads + a) * stride;
        const std::size_t h = first + static_cast<std::size_t>(a);
        if (counted > 0) sums.confidence[h] += static_cast<double>(*std::max_element(w, w + counted));
        sums.norm[h] += norm<T>(site, output, row, a, heads);
        ++sums.rows[h];
      }
  }

  template <class T>
  double norm(const nn::AttentionSite& site, const Tensor& output, std::int64_t row, std::int64_t a,
              std::int64_t heads) const {
    const nn::ParameterStore& store = model_.parameters();
    const Tensor weight = store.value(store.at(path(site) + "/output/weight"));
    const std::int64_t width = output.cols(), dim = width / heads;
    const T* y = output.as<T>() + row * width + a * dim;
    double sum = 0;
    for (std::int64_t o = 0; o < weight.shape[0]; ++o) {
      const T* w = weight.as<T>() + o * width + a * dim;
      double value = 0;
      for (std::int64_t c = 0; c < dim; ++c) value += static_cast<double>(w[c]) * static_cast<double>(y[c]);
      sum += value * value;
    }
    return std::sqrt(sum);
  }

  const nn::Transformer& model_;
  std::span<const Head> heads_;
  std::vector<RowSums> sums_;
};

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

HeadFigures head_figures(const nn::Transformer& model, std::span<const decode::TokenPair> pairs, int threads,
                         const decode::Progress& progress) {
  HeadFigures figures{.heads = all_heads(model.config())};
  figures.importance = importance(model, pairs, threads, progress);
  figures.importance_normalized = normalized(figures.heads, figures.importance);
  RowMeasures measures(model, figures.heads, pairs.size());
  const double whole = loss(decode::score(model, pairs, threads, progress,
                                          [&](const nn::AttentionCall& call, const decode::QueryRows& rows) {
                                            return measures.inputs(call, rows);
                                          }));
  const RowSums total = measures.total();
  const Masking masking(model, MaskMethod::zero);
  for (std::size_t h = 0; h < figures.heads.size(); ++h) {
    figures.confidence.push_back(total.confidence[h] / total.rows[h]);
    figures.output_norm.push_back(total.norm[h] / total.rows[h]);
    figures.leave_one_out.push_back(
        loss(decode::score(model, pairs, threads, progress, masking.hook({figures.heads[h]}))) - whole);
  }
  return figures;
}

}  // namespace polyhead::heads
