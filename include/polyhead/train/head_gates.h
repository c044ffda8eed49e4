#pragma once

#include <string>
#include <vector>

#include "polyhead/nn/transformer.h"

namespace polyhead::train {

/// Where the parameters of an attention are: "encoder/layers/0/self_attention".
std::string path(const nn::AttentionSite& site);
/// Where the gates of its heads are: log α, [heads].
std::string gates_path(const nn::AttentionSite& site);

/// A hard-concrete gate on every head (ops::HardConcrete), learned with the model under the penalty
///   λ·Σ_h P(ξ_h ≠ 0)
/// on how many stay open (Voita et al. 2019, arXiv:1905.09418, section 6). A model uses gates while it is trained; whoever
/// else uses it finds them folded into W^O.
class HeadGates {
 public:
  /// Declares the gates of every attention that has heads; before the model's memory is allocated.
  static void declare(nn::Transformer& model);
  /// Of the gates that were declared; the model must outlive it.
  explicit HeadGates(const nn::Transformer& model);
  bool empty() const { return gates_.empty(); }

  /// Every log α.
  void fill(double log_alpha) const;
  /// For the hook of an attention: its gates as `context` has their parameters and gradients.
  nn::AttentionInputs inputs(const nn::Context& context, const nn::AttentionCall& call) const;
  /// Σ P(ξ ≠ 0).
  double expected_open() const;
  /// Adds weight·∂(Σ P(ξ ≠ 0))/∂(log α).
  void add_penalty(double weight, const Tensor& gradients) const;
  /// W^O_h <- ξ_h W^O_h with the gates as they are outside of training.
  void fold() const;

 private:
  struct Gates {
    nn::AttentionSite site;
    const nn::Parameter *log_alpha, *output;
  };
  const nn::ParameterStore& store_;
  std::vector<Gates> gates_;
};

}  // namespace polyhead::train
