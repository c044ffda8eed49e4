#include "polyhead/nn/decoder.h"

#include "polyhead/nn/encoder.h"

namespace polyhead::nn {

void DecoderState::copy_slot(std::int32_t from, std::int32_t to) {
  for (Layer& layer : layers_) layer.cache.copy_slot(from, to);
}

DecoderLayer::DecoderLayer(const Scope& scope, const ModelConfig& c, int layer)
    : self_attention_(scope / "self_attention", attention_dimensions(c, {AttentionKind::decoder, layer}),
                      {AttentionKind::decoder, layer}),
      around_self_(scope / "self_attention", c.d_model, c.norm == Norm::pre, c.dropout),
      cross_attention_(scope / "cross_attention", attention_dimensions(c, {AttentionKind::cross, layer}),
                       {AttentionKind::cross, layer}),
      around_cross_(scope / "cross_attention", c.d_model, c.norm == Norm::pre, c.dropout),
      feed_forward_(scope / "feed_forward", c.d_model, c.d_ff, c.activation, c.activation_dropout, c.bias),
      around_feed_forward_(scope / "feed_forward", c.d_model, c.norm == Norm::pre, c.dropout) {}

template <class SelfAttention>
Var DecoderLayer::run(const Context& context, Var x, const Segments& rows, const KeyValues& memory,
                      const Segments& sources, const SelfAttention& attend) const {
  x = around_self_(context, x, rows, attend);
  x = around_cross_(context, x, rows,
                    [&](Var y) { return cross_attention_.cross(context, y, rows, memory, sources); });
  return around_feed_forward_(context, x, rows, [&](Var y) { return feed_forward_(context, y, rows); });
}

Var DecoderLayer::operator()(const Context& context, Var x, const Segments& targets, Var memory,
                             const Segments& sources) const {
  return run(context, x, targets, cross_attention_.project(context, memory), sources,
             [&](Var y) { return self_attention_.self(context, y, targets, true); });
}

DecoderState::Layer DecoderLayer::start(const Context& context, Var memory, std::int64_t slots,
                                        std::int64_t capacity) const {
  return {self_attention_.cache(context.tape.exec().activations, slots, capacity, memory.dtype()),
          cross_attention_.project(context, memory)};
}

Var DecoderLayer::step(const Context& context, Var x, const Segments& rows,
                       std::span<const std::int32_t> slots, const Segments& sources,
                       DecoderState::Layer& state) const {
  return run(context, x, rows, state.memory, sources,
             [&](Var y) { return self_attention_.step(context, y, state.cache, rows, slots); });
}

Decoder::Decoder(const Scope& scope, const ModelConfig& config) {
  for (int i = 0; i < config.decoder_layers; ++i) layers_.emplace_back(scope / "layers" / i, config, i);
  if (config.norm == Norm::pre) norm_.emplace(scope / "norm", config.d_model);
}

Var Decoder::operator()(const Context& context, Var x, const Segments& targets, Var memory,
                        const Segments& sources) const {
  for (const DecoderLayer& layer : layers_) x = layer(context, x, targets, memory, sources);
  return norm_ ? (*norm_)(context, x) : x;
}

DecoderState Decoder::start(const Context& context, Var memory, std::int64_t slots,
                            std::int64_t capacity) const {
  std::vector<DecoderState::Layer> state;
  for (const DecoderLayer& layer : layers_) state.push_back(layer.start(context, memory, slots, capacity));
  return DecoderState(std::move(state));
}

Var Decoder::step(const Context& context, Var x, const Segments& rows, std::span<const std::int32_t> slots,
                  const Segments& sources, DecoderState& state) const {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i].step(context, x, rows, slots, sources, state.layer(i));
  return norm_ ? (*norm_)(context, x) : x;
}

}  // namespace polyhead::nn
