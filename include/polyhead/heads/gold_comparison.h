#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "polyhead/data/pair.h"
#include "polyhead/heads/gold.h"

namespace polyhead::heads {

/// Why heads cannot be compared with gold annotations of pairs, whose ids are given too; "" where they can: the pairs have
/// neither gold alignment nor dependencies, or their tokens are not a piece each.
std::string gold_problem(std::span<const data::Pair> pairs, std::span<const decode::TokenPair> ids);

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

/// Over all pairs that have gold annotations, the given target as the decoder's input; `ids` are theirs. The result does not
/// depend on `threads`. Throws Error when there is a gold_problem(), NumbersError when a head's weights are not finite.
GoldComparison compare_with_gold(const nn::Transformer& model, std::span<const data::Pair> pairs,
                                 std::span<const decode::TokenPair> ids, int threads,
                                 const decode::Progress& progress = {});

}  // namespace polyhead::heads
