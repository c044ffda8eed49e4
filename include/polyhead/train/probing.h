#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "polyhead/data/pair.h"
#include "polyhead/decode/translate.h"
#include "polyhead/metrics/confidence.h"
#include "polyhead/metrics/score.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/text/pipeline.h"
#include "polyhead/train/config.h"

/// What a model does with sentences that say what they test: accuracy by phenomenon.
namespace polyhead::train {

/// What a model makes of one data::Probe.
struct ProbeOutcome {
  /// Whether the target's token at Probe::slot is the most probable one after the target's tokens before it, which the
  /// model is given (teacher forcing): all pieces of that token are.
  bool slot_correct = false;
  /// log p(target | source) − log p(contrast | source), whole sentences with their ends, natural logarithm; the model
  /// is right when it is above 0 (contrastive evaluation: Sennrich 2017, E17-2060).
  double margin = 0;
  bool contrastive_correct() const { return margin > 0; }
};

/// What a model makes of one sentence.
struct ProbedSentence {
  std::string translation;
  bool exact_match = false;          ///< the translation is the target, as metrics::exact_match says
  double log_probability = 0;        ///< of the target, natural logarithm
  std::int64_t tokens = 0;           ///< of the target, its end among them; 0: without a log_probability
  std::vector<ProbeOutcome> probes;  ///< of Pair::probes, in their order
};
struct ProbedText {
  std::vector<ProbedSentence> sentences;
  std::int64_t cropped = 0;  ///< sources of more than Config::max_pieces() pieces, cut there
};

/// Translates pairs as `config.decoding` says and probes them, `attention` being asked about sentences by their numbers
/// among `pairs`; `threads` do not change a bit of the result. Throws DataError when a target or contrast has more pieces
/// than the model has places for, NumbersError as decode::score().
ProbedText probe(const nn::Transformer& model, const text::TextPipeline& pipeline, const Config& config,
                 std::span<const data::Pair> pairs, int threads, const decode::Progress& translated = {},
                 const decode::AttentionHook& attention = {});

/// Shares of sentences and probes, in percent with Wilson's interval, which takes them as independent.
struct ProbeRates {
  std::int64_t sentences = 0, probes = 0;
  metrics::Estimate exact_match;                          ///< of the sentences
  metrics::Estimate slot_accuracy, contrastive_accuracy;  ///< of the probes
};

/// Of the sentences that hold a phenomenon, and of its probes.
struct PhenomenonReport {
  ProbeRates rates;
  metrics::Estimate chrf;  ///< of the sentences, with metrics::bootstrap() over them
  /// By the probes' parameters; empty where all have the same.
  std::map<int, ProbeRates> by_distance, by_attractors, by_depth;
};
struct ProbingReport {
  PhenomenonReport all;  ///< all sentences, those without a probe too, and all probes
  std::vector<std::pair<data::Phenomenon, PhenomenonReport>> phenomena;  ///< those that occur
};

/// Sums up what probe() gave for `pairs`. Throws DataError when there are none, or not a result for every sentence and
/// probe.
ProbingReport probing_report(std::span<const data::Pair> pairs, std::span<const ProbedSentence> sentences,
                             const metrics::Options& options, int threads);

}  // namespace polyhead::train
