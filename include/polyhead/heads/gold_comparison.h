#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "polyhead/data/corpus.h"
#include "polyhead/heads/gold.h"
#include "polyhead/text/pipeline.h"

namespace polyhead::heads {

/// Pairs of a task with what is known about them, and their ids.
struct AnnotatedPairs {
  std::vector<data::Pair> pairs;
  std::vector<std::vector<std::int32_t>> sources, targets;  ///< as the pipeline gives them, eos at the end
  std::int64_t too_long = 0;                                ///< pairs that were left out
  std::vector<decode::TokenPair> ids() const;
};

/// The first `limit` pairs (0: all) of a split of `config.task`, but for those of which a side has more than
/// `max_length` ids. Throws Error when the task has neither gold alignment nor dependencies, or the tokenizers do not
/// give one piece a token, DataError when no pair is left.
AnnotatedPairs load_annotated(const data::DataConfig& config, data::Split split, std::uint64_t seed,
                              const text::TextPipeline& pipeline, int max_length, std::int64_t limit = 0);

/// Agreement of one head with one relation.
struct RelationAgreement {
  EdgeAgreement edges;
  AlignmentAgreement alignment;  ///< of cross-attention
};

/// A relation that has edges, and what the best fixed offsets do.
struct RelationBaseline {
  Relation relation;
  OffsetAgreement edges;
  std::optional<OffsetScore> error_rate;  ///< of cross-attention
};

/// What the heads of a model have in common with the gold annotations.
struct GoldComparison {
  std::vector<Head> heads;
  std::vector<RelationBaseline> relations;
  /// [head][relation]: empty where the relation is not of the head's kind of attention.
  std::vector<std::vector<std::optional<RelationAgreement>>> agreements;
};

/// Over all pairs, the given target as the decoder's input. The result does not depend on `threads`.
/// Throws NumbersError when a head's weights are not finite.
GoldComparison compare_with_gold(const nn::Transformer& model, const AnnotatedPairs& data, int threads,
                                 const decode::Progress& progress = {});

}  // namespace polyhead::heads
