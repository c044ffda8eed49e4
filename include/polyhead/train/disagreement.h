#pragma once

#include <array>

#include "polyhead/data/batches.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/train/config.h"

namespace polyhead::train {

/// The disagreement of heads (Li, Tu, Yang, Lyu & Zhang 2018, arXiv:1810.10183) as terms of the training loss. Of an
/// attention with h heads, values V^i, weights A^i (before dropout) and outputs O^i before W^O,
///   D_subspace = −1/h² Σ_i Σ_j cos(V^i, V^j)
///   D_position = −1/h² Σ_i Σ_j |A^i ⊙ A^j|
///   D_output   = −1/h² Σ_i Σ_j cos(O^i, O^j)
/// i = j included, which is constant for cosines and for positions asks for weights that are spread. The loss per target
/// token is that of the likelihood minus λ·D of each of the three, with weights λ of their own.
///
/// Where the paper leaves it open, D is the mean over the rows of an update, so that neither length nor batch matter:
/// cosines are of the vectors at one position and |A^i ⊙ A^j| is the sum over the keys of one query; and the mean over the
/// attentions of the kinds asked for, so that depth does not. Each D is within −1 … 0.
class Disagreement {
 public:
  Disagreement(const DisagreementConfig& config, const nn::ModelConfig& model);
  /// Nothing to compute: no weight above 0, or no attention with heads.
  bool empty() const;
  /// Starts an update of that many tokens.
  void begin(const data::TokenCount& update);

 private:
  friend class ShardDisagreement;
  DisagreementConfig config_;
  int attentions_ = 0;
  double source_row_ =
      1;  ///< target tokens of the update a source token: what its row counts beside a target row
};

/// The terms of one shard, on its tape.
class ShardDisagreement {
 public:
  explicit ShardDisagreement(const Disagreement& update) : update_(update) {}
  /// Of an attention that was computed.
  void add(const nn::AttentionFlow& flow);
  /// loss − Σ λ·D, as sums over target tokens.
  Var add_to(Tape& tape, Var loss) const;
  /// D of subspace, position and output, times target tokens; 0 of what has no weight.
  std::array<double, 3> sums() const;

 private:
  void add(std::size_t aspect, Tape& tape, Var similarity, double row);
  const Disagreement& update_;
  std::array<Var, 3> similarity_;
};

}  // namespace polyhead::train
