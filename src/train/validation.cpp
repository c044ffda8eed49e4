#include "polyhead/train/validation.h"

#include <cmath>

#include "polyhead/config/codec.h"
#include "polyhead/decode/translate.h"
#include "polyhead/metrics/metrics.h"

namespace polyhead::train {
namespace {

data::Filter model_filter(const nn::ModelConfig& model) { return {.skip_empty = true, .max_length = model.max_length - 1}; }

}  // namespace

Translations translate_lines(const nn::Transformer& model, const text::TextPipeline& pipeline,
                             std::span<const std::string> lines, const decode::DecodingConfig& decoding, int threads) {
  const auto longest = static_cast<std::size_t>(model.config().max_length);
  Translations result;
  std::vector<std::vector<std::int32_t>> ids;
  for (const std::string& line : lines) {
    ids.push_back(pipeline.encode_source(line));
    if (ids.back().size() <= longest) continue;
    ++result.cropped;
    ids.back().resize(longest);
    ids.back().back() = decode::eos_id;
  }
  const std::vector<decode::TokenIds> sources(ids.begin(), ids.end());
  for (const auto& hypotheses : decode::translate(model, sources, decoding, threads))
    result.lines.push_back(pipeline.decode_target(hypotheses.front().ids));
  return result;
}

metrics::Options metric_options(const EvaluationConfig& config) {
  metrics::Options options;
  options.tokenize = config.tokenize;
  options.lowercase = config.lowercase;
  return options;
}

Validation::Validation(const Config& config, const data::ParallelText& text, const text::TextPipeline& pipeline)
    : config_(config),
      text_(text),
      pipeline_(pipeline),
      corpus_(data::ParallelCorpus::encode(text, pipeline, model_filter(config.model))) {}

Figures Validation::run(const nn::Transformer& model, std::span<const Metric> decoded, std::span<Worker> workers) const {
  const ShardTotals totals = evaluate_loss(model, corpus_, config_.training.batch_tokens, workers);
  const double loss = totals.negative_log_likelihood / totals.tokens;
  Figures figures{{Metric::loss, loss},
                  {Metric::perplexity, std::exp(loss)},
                  {Metric::token_accuracy, 100 * totals.correct / totals.tokens}};
  if (decoded.empty()) return figures;
  decode::DecodingConfig greedy = config_.decoding;
  greedy.method = decode::Method::beam;
  greedy.beam_size = greedy.nbest = 1;
  const Translations translations =
      translate_lines(model, pipeline_, text_.source, greedy, static_cast<int>(workers.size()));
  for (const Metric metric : decoded)
    figures[metric] = metrics::corpus(config::Codec<Metric>::text(metric), translations.lines, {text_.target},
                                      metric_options(config_.evaluation))
                          .score;
  return figures;
}

}  // namespace polyhead::train
