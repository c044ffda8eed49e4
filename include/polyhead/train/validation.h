#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "polyhead/data/corpus.h"
#include "polyhead/decode/translate.h"
#include "polyhead/metrics/score.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/text/pipeline.h"
#include "polyhead/train/config.h"
#include "polyhead/train/update.h"

namespace polyhead::train {

/// Figures of one validation by name: loss (nats per target token, unsmoothed, end tokens counted), perplexity,
/// token_accuracy (teacher-forced, in percent), and those of text.
using Figures = std::map<Metric, double>;

/// Lines of text as sources of decode::translate().
struct EncodedLines {
  std::vector<std::vector<std::int32_t>> ids;
  std::int64_t cropped = 0;  ///< lines of more pieces than Config::max_pieces(), cut there
};
EncodedLines encode_lines(const text::TextPipeline& pipeline, const Config& config,
                          std::span<const std::string> lines);

/// Translations of lines of text, in order.
struct Translations {
  std::vector<std::vector<decode::Hypothesis>> hypotheses;  ///< of each line the best first; at least one
  std::int64_t cropped = 0;                                 ///< as in EncodedLines
  /// The text of the best of each line.
  std::vector<std::string> lines(const text::TextPipeline& pipeline) const;
};
/// Translates as `config.decoding` says, `attention` as in decode::translate(). An empty line gives a hypothesis without ids, so an empty line.
Translations translate_lines(const nn::Transformer& model, const text::TextPipeline& pipeline,
                             const Config& config, std::span<const std::string> lines, int threads,
                             const decode::Progress& progress = {},
                             const decode::AttentionHook& attention = {});

/// The metrics' options that a configuration asks for.
metrics::Options metric_options(const EvaluationConfig& config);

/// Loss, perplexity (at most the largest double) and token accuracy of a model over a whole corpus. Throws NumbersError
/// when the loss is not finite.
Figures loss_figures(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                     std::int64_t batch_tokens, std::span<Worker> workers);
/// A text as the loss takes it: pairs that are empty, or that the model is too short for, are left out.
data::ParallelCorpus loss_corpus(const Config& config, const data::ParallelText& text,
                                 const text::TextPipeline& pipeline);

/// Measures a model on a split again and again.
class Validation {
 public:
  /// Pairs that the model is too short for are left out of the loss, never of the translations.
  Validation(const Config& config, const data::ParallelText& text, const text::TextPipeline& pipeline);
  /// Loss, perplexity, token accuracy and, with greedy decoding, `decoded` (bleu, chrf, exact_match).
  Figures run(const nn::Transformer& model, std::span<const Metric> decoded, std::span<Worker> workers) const;
  /// Bytes that decoding for `decoded` will take besides what the process then has (see decode::expected_memory()).
  std::int64_t expected_memory(const nn::Transformer& model, std::span<const Metric> decoded,
                               int threads) const;
  const data::ParallelCorpus& corpus() const { return corpus_; }

 private:
  Config greedy() const;

  const Config& config_;
  const data::ParallelText& text_;
  const text::TextPipeline& pipeline_;
  data::ParallelCorpus corpus_;
};

}  // namespace polyhead::train
