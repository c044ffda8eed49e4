#include "polyhead/train/validation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "polyhead/config/codec.h"
#include "polyhead/metrics/metrics.h"

namespace polyhead::train {
std::vector<std::string> Translations::lines(const text::TextPipeline& pipeline) const {
  std::vector<std::string> result;
  for (const auto& of_line : hypotheses) result.push_back(pipeline.decode_target(of_line.front().ids));
  return result;
}

EncodedLines encode_lines(const text::TextPipeline& pipeline, const Config& config,
                          std::span<const std::string> lines) {
  EncodedLines result;
  for (const std::string& line : lines) {
    result.ids.push_back(pipeline.encode_source(line));
    if (text::crop(result.ids.back(), config.max_pieces())) ++result.cropped;
  }
  return result;
}

Translations translate_lines(const nn::Transformer& model, const text::TextPipeline& pipeline,
                             const Config& config, std::span<const std::string> lines, int threads,
                             const decode::Progress& progress, const decode::AttentionHook& attention) {
  const EncodedLines encoded = encode_lines(pipeline, config, lines);
  const std::vector<decode::TokenIds> sources(encoded.ids.begin(), encoded.ids.end());
  return {decode::translate(model, sources, config.decoding, threads, progress, nullptr, attention),
          encoded.cropped};
}

metrics::Options metric_options(const EvaluationConfig& config) {
  metrics::Options options;
  options.tokenize = config.tokenize;
  options.lowercase = config.lowercase;
  return options;
}

data::ParallelCorpus loss_corpus(const Config& config, const data::ParallelText& text,
                                 const text::TextPipeline& pipeline) {
  return data::ParallelCorpus::encode(text, pipeline,
                                      {.skip_empty = true, .max_length = config.model.max_length - 1});
}

Figures loss_figures(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                     std::int64_t batch_tokens, std::span<Worker> workers) {
  const ShardTotals totals = evaluate_loss(model, corpus, batch_tokens, workers);
  const double loss = totals.negative_log_likelihood / totals.tokens;
  require<NumbersError>(std::isfinite(loss), "loss ", loss, " over ", totals.tokens,
                        " target tokens, expected a finite number");
  return {{Metric::loss, loss},
          {Metric::perplexity, std::min(std::exp(loss), std::numeric_limits<double>::max())},
          {Metric::token_accuracy, 100 * totals.correct / totals.tokens}};
}

Validation::Validation(const Config& config, const data::ParallelText& text,
                       const text::TextPipeline& pipeline)
    : config_(config), text_(text), pipeline_(pipeline), corpus_(loss_corpus(config, text, pipeline)) {}

Config Validation::greedy() const {
  Config config = config_;
  config.decoding.method = decode::Method::beam;
  config.decoding.beam_size = config.decoding.nbest = 1;
  return config;
}

std::int64_t Validation::expected_memory(const nn::Transformer& model, std::span<const Metric> decoded,
                                         int threads) const {
  if (decoded.empty()) return 0;
  const EncodedLines encoded = encode_lines(pipeline_, config_, text_.source);
  const std::vector<decode::TokenIds> sources(encoded.ids.begin(), encoded.ids.end());
  return decode::expected_memory(model, sources, greedy().decoding, threads);
}

Figures Validation::run(const nn::Transformer& model, std::span<const Metric> decoded,
                        std::span<Worker> workers) const {
  Figures figures = loss_figures(model, corpus_, config_.training.shard_tokens(), workers);
  if (decoded.empty()) return figures;
  const std::vector<std::string> translations =
      translate_lines(model, pipeline_, greedy(), text_.source, static_cast<int>(workers.size()))
          .lines(pipeline_);
  for (const Metric metric : decoded)
    figures[metric] = metrics::corpus(config::Codec<Metric>::text(metric), translations, {text_.target},
                                      metric_options(config_.evaluation))
                          .score;
  return figures;
}

}  // namespace polyhead::train
