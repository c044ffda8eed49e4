#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "polyhead/data/corpus.h"
#include "polyhead/metrics/score.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/text/pipeline.h"
#include "polyhead/train/config.h"
#include "polyhead/train/update.h"

namespace polyhead::train {

/// Figures of one validation by name: loss (nats per target token, unsmoothed, end tokens counted), perplexity,
/// token_accuracy (teacher-forced, in percent), and those of text.
using Figures = std::map<Metric, double>;

/// Translations of lines of text, in order. An empty line gives an empty line; a line of more tokens than the model
/// takes is cropped.
struct Translations {
  std::vector<std::string> lines;
  std::int64_t cropped = 0;
};
Translations translate_lines(const nn::Transformer& model, const text::TextPipeline& pipeline,
                             std::span<const std::string> lines, const decode::DecodingConfig& decoding, int threads);

/// The metrics' options that a configuration asks for.
metrics::Options metric_options(const EvaluationConfig& config);

/// Measures a model on a split again and again.
class Validation {
 public:
  /// Pairs that the model is too short for are left out of the loss, never of the translations.
  Validation(const Config& config, const data::ParallelText& text, const text::TextPipeline& pipeline);
  /// Loss, perplexity, token accuracy and, with greedy decoding, `decoded` (bleu, chrf, exact_match).
  Figures run(const nn::Transformer& model, std::span<const Metric> decoded, std::span<Worker> workers) const;
  const data::ParallelCorpus& corpus() const { return corpus_; }

 private:
  const Config& config_;
  const data::ParallelText& text_;
  const text::TextPipeline& pipeline_;
  data::ParallelCorpus corpus_;
};

}  // namespace polyhead::train
