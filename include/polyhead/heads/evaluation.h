#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "polyhead/data/pair.h"
#include "polyhead/decode/score.h"
#include "polyhead/metrics/significance.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/probing.h"

namespace polyhead::heads {

/// Sentence pairs that a model is judged on, with their ids. Pairs of plain text have whole lines as their only tokens.
struct Text {
  std::vector<data::Pair> pairs;
  std::vector<std::vector<std::int32_t>> sources, targets;  ///< as the pipeline gives them, eos at the end
  std::int64_t left_out = 0;                                ///< pairs with an empty or too long side
  std::vector<decode::TokenPair> ids() const;
};
/// Leaves out pairs of which a side has no pieces, or more than Config::max_pieces(). Throws DataError when none is left.
Text encode_text(std::vector<data::Pair> pairs, const train::LoadedModel& loaded);

/// A figure of a model, of all sentences or of those that hold a phenomenon: `loss` (nats a target token), `bleu`,
/// `chrf`, `exact_match`, `slot_accuracy`, `contrastive_accuracy` (percent; see train::ProbeRates).
struct Figure {
  std::string name;
  std::optional<data::Phenomenon> phenomenon;
  metrics::SentenceStatistics statistics;
};

/// The figures of a model on a text, as it is or with its attention changed by `attention`: the loss alone, or with
/// `translate` all that there are. Of the same text they are the same figures in the same order.
std::vector<Figure> evaluate(const train::LoadedModel& loaded, const Text& text, bool translate, int threads,
                             const decode::AttentionHook& attention = {},
                             const decode::Progress& progress = {});

/// A figure of a changed model against that of the model as it is.
struct Change {
  double score = 0, change = 0;
  double p = 1;  ///< approximate randomisation over sentences: metrics::approximate_randomization()
  double q = 1;  ///< by Benjamini & Hochberg among all changes of that figure, those by phenomenon together
};

/// [model][figure]: what became of each figure. Throws Error when figures are not those of `baseline`.
std::vector<std::vector<Change>> compare(std::span<const Figure> baseline,
                                         std::span<const std::vector<Figure>> changed,
                                         const metrics::Resampling& resampling);

}  // namespace polyhead::heads
