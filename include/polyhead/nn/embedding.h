#pragma once

#include <optional>
#include <span>

#include "polyhead/nn/config.h"
#include "polyhead/nn/context.h"
#include "polyhead/tensor/segments.h"

namespace polyhead::nn {

/// Sinusoidal position encodings [length, d_model], Vaswani et al. 2017 §3.5:
/// P(p, 2i) = sin(p/10000^(2i/d)), P(p, 2i+1) = cos(p/10000^(2i/d)).
class SinusoidalPositions {
 public:
  explicit SinusoidalPositions(const Shape& shape);
  /// f32 or f64.
  Tensor table(DType dtype) const { return dtype == DType::f64 ? f64_.tensor() : f32_.tensor(); }

 private:
  Slab f32_, f64_;
};

/// x = dropout(√d_model·E[ids] + P[positions]).
class EmbeddingLayer {
 public:
  /// Uses `weight` [V, d_model], which may be shared with another embedding and the output.
  /// Learned positions are declared as scope/positions/weight.
  EmbeddingLayer(const Scope& scope, const ModelConfig& config, const Parameter& weight);
  /// Rows of whole sentences, positions counted from 0.
  Var operator()(const Context& context, const Tensor& ids, const Segments& segments) const;
  /// Rows at given positions ([N], i32). Throws Error when one is not below max_length.
  Var at(const Context& context, const Tensor& ids, const Tensor& positions, const Segments& segments) const;

 private:
  const Parameter& weight_;
  const Parameter* learned_ = nullptr;
  std::optional<SinusoidalPositions> sinusoidal_;
  std::int32_t max_length_;
  double scale_, dropout_;
  std::uint64_t site_;
};

}  // namespace polyhead::nn
