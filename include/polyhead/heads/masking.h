#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "polyhead/decode/score.h"
#include "polyhead/heads/attention_maps.h"

namespace polyhead::heads {

/// What a masked head gives instead of its output.
enum class MaskMethod {
  zero,      ///< nothing: as if its slice of W^O were gone (Michel, Levy & Neubig 2019, arXiv:1905.10650)
  mean,      ///< its mean output over all positions of the data
  resample,  ///< its output at the same position of another sentence, the last where that one is shorter
  uniform,   ///< its values under equal weights on all that it may see
};
inline constexpr std::array<std::string_view, 4> mask_method_names{"zero", "mean", "resample", "uniform"};
constexpr std::string_view name(MaskMethod method) {
  return mask_method_names[static_cast<std::size_t>(method)];
}

/// What every head gives at every position of sentence pairs before W^O, the given target as the decoder's input.
class HeadOutputs {
 public:
  HeadOutputs(const nn::Transformer& model, std::span<const decode::TokenPair> pairs, int threads,
              const decode::Progress& progress = {});
  std::int64_t sentences() const { return static_cast<std::int64_t>(outputs_.size()); }
  /// Of all heads of an attention at a position of a sentence, its last where it has none: [heads·value_dim].
  std::span<const float> row(const nn::AttentionSite& site, std::int64_t sentence,
                             std::int64_t position) const;
  /// The mean of all rows.
  std::vector<double> mean(const nn::AttentionSite& site) const;

 private:
  std::size_t index(const nn::AttentionSite& site) const;
  std::array<std::size_t, nn::attention_kinds.size()> first_{};  // of each kind's layers
  std::vector<std::int64_t> widths_;
  std::vector<std::vector<std::vector<float>>> outputs_;  // [sentence][attention], row by row
};

/// Runs a model without some of its heads.
class Masking {
 public:
  /// `outputs` of the sentences that the model will be run on, in their order; must outlive it. Null: for zero and
  /// uniform, which need none. `seed` draws which other sentence each sentence's outputs are resampled from. Throws
  /// Error when outputs are missing, DataError when there is no other sentence.
  Masking(const nn::Transformer& model, MaskMethod method, const HeadOutputs* outputs = nullptr,
          std::uint64_t seed = 1);

  /// For decode::score() and decode::translate(), and all that takes such a hook. Must not outlive the Masking.
  decode::AttentionHook hook(std::vector<Head> masked) const;

 private:
  nn::AttentionInputs inputs(const nn::AttentionCall& call, const decode::QueryRows& rows,
                             std::span<const Head> masked) const;
  Tensor replacement(const nn::AttentionCall& call, const decode::QueryRows& rows) const;

  MaskMethod method_;
  DType dtype_;
  const HeadOutputs* outputs_;
  std::vector<std::pair<nn::AttentionSite, std::vector<double>>> means_;
  std::vector<std::int64_t> other_;  // [sentence]: the one that its outputs are resampled from
};

}  // namespace polyhead::heads
