#include "polyhead/nn/encoder.h"

namespace polyhead::nn {

AttentionDimensions attention_dimensions(const ModelConfig& c, const AttentionSite& site) {
  return {.d_model = c.d_model,
          .heads = c.heads.at(site),
          .head_dim = c.key_width(),
          .value_dim = c.value_width(),
          .dropout = c.attention_dropout,
          .bias = c.bias};
}

EncoderLayer::EncoderLayer(const Scope& scope, const ModelConfig& c, int layer)
    : self_attention_(scope / "self_attention", attention_dimensions(c, {AttentionKind::encoder, layer}),
                      {AttentionKind::encoder, layer}),
      around_attention_(scope / "self_attention", c.d_model, c.norm == Norm::pre, c.dropout),
      feed_forward_(scope / "feed_forward", c.d_model, c.d_ff, c.activation, c.activation_dropout, c.bias),
      around_feed_forward_(scope / "feed_forward", c.d_model, c.norm == Norm::pre, c.dropout) {}

Var EncoderLayer::operator()(const Context& context, Var x, const Segments& segments) const {
  x = around_attention_(context, x, segments,
                        [&](Var y) { return self_attention_.self(context, y, segments, false); });
  return around_feed_forward_(context, x, segments,
                              [&](Var y) { return feed_forward_(context, y, segments); });
}

Encoder::Encoder(const Scope& scope, const ModelConfig& config) {
  for (int i = 0; i < config.encoder_layers; ++i) layers_.emplace_back(scope / "layers" / i, config, i);
  if (config.norm == Norm::pre) norm_.emplace(scope / "norm", config.d_model);
}

Var Encoder::operator()(const Context& context, Var x, const Segments& segments) const {
  for (const EncoderLayer& layer : layers_) x = layer(context, x, segments);
  return norm_ ? (*norm_)(context, x) : x;
}

}  // namespace polyhead::nn
