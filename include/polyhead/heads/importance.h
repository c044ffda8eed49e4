#pragma once

#include <span>
#include <vector>

#include "polyhead/decode/score.h"
#include "polyhead/heads/weight_figures.h"

namespace polyhead::heads {

/// What there is to say about how much each head matters; vectors are in the order of all_heads().
struct HeadFigures {
  std::vector<Head> heads;
  /// E_x |∂L(x)/∂ξ_h| at ξ = 1, the mean over sentence pairs x of the absolute value, taken for each pair by itself;
  /// L(x) = −log p(target | source), summed over the target's tokens (Michel, Levy & Neubig 2019, arXiv:1905.10650,
  /// equation 2).
  std::vector<double> importance = {};
  /// Divided by the ℓ2 norm over the heads of its layer and kind (Molchanov et al. 2017, arXiv:1611.06440); 0 where
  /// that is 0.
  std::vector<double> importance_normalized = {};
  /// How much the loss, in nats a target token, grows when the head alone is masked with zero.
  std::vector<double> leave_one_out = {};
  std::vector<double> confidence = {};   ///< as WeightFigures has it
  std::vector<double> output_norm = {};  ///< as OutputFigures has it
};

/// The gradient figure alone.
std::vector<double> importance(const nn::Transformer& model, std::span<const decode::TokenPair> pairs,
                               int threads, const decode::Progress& progress = {});

/// All of them over the pairs of `tokens`, the given target as the decoder's input. The result does not depend on
/// `threads`. Throws DataError without pairs, and as decode::score() and AttentionMaps.
HeadFigures head_figures(const nn::Transformer& model, const TokenKnowledge& tokens, int threads,
                         const decode::Progress& progress = {});

/// −Σ log p over pairs divided by their target tokens.
double loss(std::span<const decode::Score> scores);

}  // namespace polyhead::heads
