#pragma once

#include <optional>
#include <vector>

#include "polyhead/nn/attention/multi_head.h"
#include "polyhead/nn/config.h"
#include "polyhead/nn/layers.h"

namespace polyhead::nn {

/// Self-attention and feed-forward, each with its residual connection and norm: `self_attention`,
/// `feed_forward`.
class EncoderLayer {
 public:
  EncoderLayer(const Scope& scope, const ModelConfig& config, int layer = 0);
  Var operator()(const Context& context, Var x, const Segments& segments) const;

 private:
  MultiHeadAttention self_attention_;
  Residual around_attention_;
  FeedForward feed_forward_;
  Residual around_feed_forward_;
};

/// A stack of layers `layers/0` …, and with pre-norm a last `norm`.
class Encoder {
 public:
  Encoder(const Scope& scope, const ModelConfig& config);
  Var operator()(const Context& context, Var x, const Segments& segments) const;

 private:
  std::vector<EncoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

/// What the configuration says of one attention sub-layer.
AttentionDimensions attention_dimensions(const ModelConfig& config, const AttentionSite& site);

}  // namespace polyhead::nn
