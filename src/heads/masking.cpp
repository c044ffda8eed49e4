#include "polyhead/heads/masking.h"

#include <algorithm>

#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"

namespace polyhead::heads {

HeadOutputs::HeadOutputs(const nn::Transformer& model, std::span<const decode::TokenPair> pairs, int threads,
                         const decode::Progress& progress) {
  const nn::ModelConfig& config = model.config();
  for (const nn::AttentionKind kind : nn::attention_kinds) {
    first_[static_cast<std::size_t>(kind)] = widths_.size();
    for (int layer = 0; layer < config.layers(kind); ++layer)
      widths_.push_back(std::int64_t{config.heads.at({kind, layer})} * config.value_width());
  }
  outputs_.assign(pairs.size(), std::vector<std::vector<float>>(widths_.size()));
  const auto keep = [&](const nn::AttentionSite& site, const Segments& queries,
                        std::span<const std::int64_t> sentences, const Tensor& output) {
    for (std::int64_t s = 0; s < queries.count(); ++s) {
      auto& kept = outputs_[static_cast<std::size_t>(sentences[static_cast<std::size_t>(s)])][index(site)];
      dispatch(output.dtype, [&]<class T>() {
        const auto rows = output.slice_rows(queries[s].begin, queries[s].length).span<T>();
        std::transform(rows.begin(), rows.end(), std::back_inserter(kept),
                       [](T x) { return static_cast<float>(x); });
      });
    }
  };
  decode::score(
      model, pairs, threads, progress, [&](const nn::AttentionCall& call, const decode::QueryRows& rows) {
        return nn::AttentionInputs{.observe = [&keep, site = call.site, queries = call.queries,
                                               sentences = rows.sentences](const nn::AttentionFlow& flow) {
          keep(site, queries, sentences, flow.output.value());
        }};
      });
}

std::size_t HeadOutputs::index(const nn::AttentionSite& site) const {
  return first_[static_cast<std::size_t>(site.kind)] + static_cast<std::size_t>(site.layer);
}

std::span<const float> HeadOutputs::row(const nn::AttentionSite& site, std::int64_t sentence,
                                        std::int64_t position) const {
  const std::size_t at = index(site);
  const auto width = widths_[at];
  const std::vector<float>& rows = outputs_[static_cast<std::size_t>(sentence)][at];
  require(!rows.empty(), "heads: no outputs of sentence ", sentence + 1);
  const std::int64_t last = static_cast<std::int64_t>(rows.size()) / width - 1;
  return std::span(rows).subspan(static_cast<std::size_t>(std::min(position, last) * width),
                                 static_cast<std::size_t>(width));
}

std::vector<double> HeadOutputs::mean(const nn::AttentionSite& site) const {
  const std::size_t at = index(site);
  const auto width = static_cast<std::size_t>(widths_[at]);
  if (width == 0) return {};
  std::vector<double> sum(width);
  std::size_t values = 0;
  for (const auto& sentence : outputs_) {
    for (std::size_t i = 0; i < sentence[at].size(); ++i) sum[i % width] += double{sentence[at][i]};
    values += sentence[at].size();
  }
  for (double& x : sum) x *= static_cast<double>(width) / static_cast<double>(values);
  return sum;
}

Masking::Masking(const nn::Transformer& model, MaskMethod method, const HeadOutputs* outputs,
                 std::uint64_t seed)
    : method_(method), dtype_(model.parameters().dtype()), outputs_(outputs) {
  const bool resample = method == MaskMethod::resample;
  require(outputs || (method != MaskMethod::mean && !resample), "masking: ", name(method),
          " needs the heads' outputs");
  if (method == MaskMethod::mean)
    for (const nn::AttentionKind kind : nn::attention_kinds)
      for (int layer = 0; layer < model.config().layers(kind); ++layer)
        means_.emplace_back(nn::AttentionSite{kind, layer}, outputs->mean({kind, layer}));
  if (!resample) return;
  const auto count = static_cast<std::uint64_t>(outputs->sentences());
  require<DataError>(count >= 2, "masking: resample from another sentence of ", count,
                     ", expected at least 2");
  const RngKey key = RngKey{seed}.fold("resample");
  for (std::uint64_t s = 0; s < count; ++s)
    other_.push_back(static_cast<std::int64_t>((s + 1 + RandomStream(key.fold(s)).below(count - 1)) % count));
}

decode::AttentionHook Masking::hook(std::vector<Head> masked) const {
  return [this, masked = std::move(masked)](const nn::AttentionCall& call, const decode::QueryRows& rows) {
    return inputs(call, rows, masked);
  };
}

nn::AttentionInputs Masking::inputs(const nn::AttentionCall& call, const decode::QueryRows& rows,
                                    std::span<const Head> masked) const {
  const bool uniform = method_ == MaskMethod::uniform;
  if (std::none_of(masked.begin(), masked.end(), [&](const Head& head) { return head.site == call.site; }))
    return {};
  const Tensor factors =
      call.tape.exec().activations.tensor(uniform ? Shape{call.heads} : Shape{1, call.heads}, dtype_);
  dispatch(dtype_, [&]<class T>() {
    const auto values = factors.span<T>();
    std::fill(values.begin(), values.end(), T{1});
    for (const Head& head : masked)
      if (head.site == call.site) values[static_cast<std::size_t>(head.head)] = 0;
  });
  if (uniform) return {.logit_scale = factors};
  nn::AttentionInputs result{.gates = call.tape.leaf(factors)};
  if (method_ != MaskMethod::zero) result.replacement = call.tape.leaf(replacement(call, rows));
  return result;
}

Tensor Masking::replacement(const nn::AttentionCall& call, const decode::QueryRows& rows) const {
  const std::int64_t width = call.heads * call.value_dim;
  const bool mean = method_ == MaskMethod::mean;
  const Tensor result = call.tape.exec().activations.zeros({mean ? 1 : call.queries.rows(), width}, dtype_);
  dispatch(dtype_, [&]<class T>() {
    const auto put = [&](std::int64_t row, const auto& values) {
      std::transform(values.begin(), values.end(), result.as<T>() + row * width,
                     [](auto x) { return static_cast<T>(x); });
    };
    if (mean) {
      put(0, std::find_if(means_.begin(), means_.end(), [&](const auto& of) {
               return of.first == call.site;
             })->second);
      return;
    }
    for (std::int64_t s = 0; s < call.queries.count(); ++s) {
      const auto sentence = static_cast<std::size_t>(rows.sentences[static_cast<std::size_t>(s)]);
      for (std::int64_t i = 0; i < call.queries[s].length; ++i)
        put(call.queries[s].begin + i, outputs_->row(call.site, other_[sentence], rows.position + i));
    }
  });
  return result;
}

}  // namespace polyhead::heads
