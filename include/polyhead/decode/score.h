#pragma once

#include <span>
#include <vector>

#include "polyhead/decode/translate.h"

namespace polyhead::decode {

/// A source and a translation of it, both with eos at the end; a target without eos is one cut at its length limit.
struct TokenPair {
  TokenIds source, target;
};

struct Score {
  double log_probability = 0;  ///< Σ of `tokens`
  std::vector<double> tokens;  ///< log p of each target id given the ids before it
  /// The most probable id at each position, given the target's ids before it.
  std::vector<std::int32_t> predictions;
};

/// log p(target | source) of each pair (natural logarithm), all positions at once from the given target.
/// `attention`, where there is one, is asked at every attention.
/// As in translate(), a source without ids other than eos has one translation, the empty one: its log-probability is 0.
/// Neither the order of the pairs nor `threads` changes a bit of the result. Throws DataError, which names them, when
/// sides are empty or longer than the model's max_length, NumbersError when a probability is not finite.
std::vector<Score> score(const nn::Transformer& model, std::span<const TokenPair> pairs, int threads,
                         const Progress& progress = {}, const AttentionHook& attention = {});

}  // namespace polyhead::decode
