#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/heads/output_figures.h"
#include "polyhead/heads/weight_figures.h"

namespace polyhead::heads {

struct HeadDiagnostics {
  Head head;
  WeightFigures weights;
  OutputFigures outputs;
};

/// How alike the heads of one attention are, [heads·heads] row by row: see WeightStatistics and OutputStatistics.
struct SiteSimilarity {
  nn::AttentionSite site;
  std::size_t heads = 0;
  std::vector<double> jensen_shannon, cka, cosine;
};

struct Diagnostics {
  std::vector<HeadDiagnostics> heads;
  std::vector<SiteSimilarity> similarities;
  std::vector<RolloutFigures> rollouts;
};

/// What every head of a model does on sentence pairs, the given target as the decoder's input. The result does not depend
/// on `threads`. `progress` is told of every pair twice. Throws DataError without pairs, and as AttentionMaps.
Diagnostics diagnose(const nn::Transformer& model, const text::TextPipeline& pipeline,
                     std::span<const decode::TokenPair> pairs, int threads,
                     const decode::Progress& progress = {});

/// A head that something is the matter with, by the figure that says so.
///   collapsed  effective_rank < 1.5: the head writes to one direction only
///   saturated  saturation > 0.95: softmax passes hardly a gradient to its queries and keys
///   redundant  CKA > 0.98 with an earlier head of its attention
///   dead       relative_output_norm < 0.01: it adds nothing to its attention
///   exploding  logit_deviation > 10, or gradient_norm > 10 times the median of all heads; or one is not finite
struct Warning {
  Head head;
  std::string_view warning, figure;
  double value = 0, threshold = 0;
  std::optional<int> other = {};  ///< redundant: with which head
  /// "encoder layer 0 head 3 is dead: relative_output_norm 0.002 < 0.01; ..." and what can be done about it.
  std::string message() const;
};
std::vector<Warning> warnings(const Diagnostics& diagnostics);

}  // namespace polyhead::heads
