#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyhead/config/constraint.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead {
class Arena;
}

namespace polyhead::train {

/// Where weight decay enters: into the gradient (adam, Kingma & Ba 2015, arXiv:1412.6980, with an L2 penalty)
/// or into the parameter alone (adamw, Loshchilov & Hutter 2019, arXiv:1711.05101).
enum class OptimizerKind : std::uint8_t { adam, adamw };
inline config::EnumNames<OptimizerKind> enum_names(OptimizerKind) {
  return {{OptimizerKind::adam, "adam"}, {OptimizerKind::adamw, "adamw"}};
}

/// The optimiser's part of the `training` section.
struct AdamConfig {
  OptimizerKind optimizer = OptimizerKind::adam;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double eps = 1e-9;
  double weight_decay = 0;
  double clip_norm = 0;
  bool operator==(const AdamConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("optimizer", optimizer, "adam (weight decay in the gradient) or adamw (decoupled weight decay)");
    v("beta1", beta1, "decay of the mean of gradients", config::at_least(0), config::below(1));
    v("beta2", beta2, "decay of the mean of squared gradients", config::at_least(0), config::below(1));
    v("eps", eps, "added to the root of the mean squared gradient", config::above(0));
    v("weight_decay", weight_decay, "weight decay of weights and embeddings, not of norms and biases",
      config::at_least(0));
    v("clip_norm", clip_norm, "largest global norm of the gradient; 0: no clipping", config::at_least(0));
  }
};

/// Elements begin ... begin + length − 1 of a slab, and whether weight decay acts on them.
struct DecayRange {
  std::int64_t begin = 0, length = 0;
  bool decay = true;
};

/// The slabs an optimiser works on: all of one size and dtype (f32 or f64).
struct AdamState {
  Tensor parameters, gradients, mean, squares;
};

/// One update of all parameters as torch.optim.Adam and AdamW do it, in one pass over the slabs. With update
/// t = 1, 2, ...
///   g = gradient_scale·gradient  (+ λ·p in adam);   p <- (1 − η·λ)·p in adamw
///   m <- β₁ m + (1 − β₁) g;   v <- β₂ v + (1 − β₂) g²;   p <- p − η·(m/(1 − β₁ᵗ))/(√(v/(1 − β₂ᵗ)) + ε)
class Adam {
 public:
  /// `ranges`, ascending and disjoint, say where decay acts; nowhere outside them. Error when they overlap.
  Adam(const AdamConfig& config, std::span<const DecayRange> ranges);
  /// Error when the slabs differ in size or dtype, or update < 1. The bits do not depend on `threads`.
  void step(const AdamState& state, std::int64_t update, double learning_rate, double gradient_scale,
            int threads) const;

 private:
  AdamConfig config_;
  std::vector<DecayRange> decayed_;
};

/// √Σ g² of a slab in double, over blocks of fixed size added in order: the bits do not depend on `threads`.
/// Not finite when an element is not.
double global_norm(const Tensor& gradients, Arena& scratch, int threads);

/// What to multiply a gradient of norm `norm` with so that its norm is at most `clip_norm`, as
/// torch.nn.utils.clip_grad_norm_: min(1, clip_norm/(norm + 1e-6)); 1 when clip_norm is 0.
double clip_factor(double norm, double clip_norm);

/// The index of the first element that is NaN or infinite, −1 when there is none.
std::int64_t first_non_finite(const Tensor& values);

/// The decay of a moving average at update t = 1, 2, ...: min(decay, (1 + t)/(10 + t)), so that the initial weights are
/// soon forgotten. As TensorFlow's ExponentialMovingAverage with num_updates and Marian's exponential smoothing
/// (Junczys-Dowmunt et al. 2018, arXiv:1804.00344) do it.
double average_decay(double decay, std::int64_t update);

/// Exponential moving average: average <- decay·average + (1 − decay)·parameters. Error when the slabs
/// differ.
void update_average(const Tensor& average, const Tensor& parameters, double decay, int threads);

}  // namespace polyhead::train
