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

/// A head that something is the matter with, by the figure that says so. Thresholds are where a figure means what the warning
/// says, and far from what heads of models that have learned the toy language give: in brackets the range over the 36
/// heads of the default model (98.6% exact match) and 72 of models of one layer with 8 heads of 16 features.
///   collapsed  effective_rank < 1.5: the head writes to one direction or none, any other has less than a sixth of its
///              singular value [15.6 … 25.3 of 32; 9.4 … 14.9 of 16]
///   saturated  saturation > 0.95: softmax passes hardly a gradient to its queries and keys; heads that look at one token are
///              often sure, but not nearly always [0 … 0.59]
///   redundant  CKA > 0.98 with an earlier head of its attention: one is the other, rotated and scaled [0.02 … 0.46]
///   dead       relative_output_norm < 0.01: it adds nothing to its attention; of h heads of equal norm and orthogonal outputs
///              it is 1/√h, 0.18 for 32 [0.22 … 0.62]. Or output_norm < 0.01: all heads of its attention may be [2 … 26]
///   exploding  logit_deviation > 10: with n keys, one ahead of all others by 10·n/√(n − 1), 38 for n = 13, whose weight is
///              1 to more digits than f32 has [0.7 … 6.7]; as a weight of 0 counts as e⁻⁸⁷, it shows for up to 75 keys.
///              Or gradient_norm > 10 times the median of all heads [up to 2.0]; or one is not finite
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
