#pragma once

#include <cstdint>

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// Hard-concrete gates (Louizos, Welling & Kingma 2018, arXiv:1712.01312, equations 10 to 13):
///   s = σ((log u − log(1 − u) + log α)/β) with u uniform in (0, 1) when training, else s = σ(log α)
///   ξ = min(1, max(0, s·(ζ − γ) + γ)),  β = 2/3, γ = −0.1, ζ = 1.1
/// log α [h] -> ξ [1, h]. Draws are a function of the update's key, the site and the gate, so all shards of an update
/// have the same gates.   ∂log α = ∂ξ·(ζ − γ)·s(1 − s)/β where 0 < ξ < 1 (β = 1 outside of training), else 0.
struct HardConcrete {
  static constexpr double beta = 2.0 / 3, gamma = -0.1, zeta = 1.1;
  std::uint64_t site = 0;
  struct Saved {
    Tensor s;  ///< [h]
  };
  Shape shape(const Tensor& log_alpha) const;
  Saved forward(Exec& exec, const Tensor& log_alpha, const Tensor& y) const;
  void backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& log_alpha,
                Grad dlog_alpha) const;

  /// P(ξ ≠ 0) = σ(log α − β·log(−γ/ζ)) when training: what the penalty on gates counts.
  static double open_probability(double log_alpha);
  /// ξ outside of training.
  static double value(double log_alpha);
};

}  // namespace polyhead::ops
