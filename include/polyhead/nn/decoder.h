#pragma once

#include <optional>
#include <span>
#include <vector>

#include "polyhead/nn/attention/multi_head.h"
#include "polyhead/nn/config.h"
#include "polyhead/nn/layers.h"

namespace polyhead::nn {

/// The decoding state of all layers: caches of self-attention, and the memory's keys and values.
class DecoderState {
 public:
  struct Layer {
    KvCache cache;
    KeyValues memory;
  };
  explicit DecoderState(std::vector<Layer> layers) : layers_(std::move(layers)) {}
  /// Tokens that a slot holds.
  std::int32_t length(std::int32_t slot) const { return layers_.front().cache.segment(slot).length; }
  /// Makes hypothesis `to` a copy of `from`.
  void copy_slot(std::int32_t from, std::int32_t to);
  Layer& layer(std::size_t i) { return layers_[i]; }

 private:
  std::vector<Layer> layers_;
};

/// Masked self-attention, cross-attention, feed-forward: `self_attention`, `cross_attention`, `feed_forward`.
class DecoderLayer {
 public:
  DecoderLayer(const Scope& scope, const ModelConfig& config, int layer = 0);
  Var operator()(const Context& context, Var x, const Segments& targets, Var memory,
                 const Segments& sources) const;
  DecoderState::Layer start(const Context& context, Var memory, std::int64_t slots,
                            std::int64_t capacity) const;
  /// One more row for each of `slots`; sources[i] is the memory of row i.
  Var step(const Context& context, Var x, const Segments& rows, std::span<const std::int32_t> slots,
           const Segments& sources, DecoderState::Layer& state) const;

 private:
  template <class SelfAttention>
  Var run(const Context& context, Var x, const Segments& rows, const KeyValues& memory,
          const Segments& sources, const SelfAttention& attend) const;
  MultiHeadAttention self_attention_;
  Residual around_self_;
  MultiHeadAttention cross_attention_;
  Residual around_cross_;
  FeedForward feed_forward_;
  Residual around_feed_forward_;
};

/// A stack of layers `layers/0` …, and with pre-norm a last `norm`.
class Decoder {
 public:
  Decoder(const Scope& scope, const ModelConfig& config);
  Var operator()(const Context& context, Var x, const Segments& targets, Var memory,
                 const Segments& sources) const;
  DecoderState start(const Context& context, Var memory, std::int64_t slots, std::int64_t capacity) const;
  Var step(const Context& context, Var x, const Segments& rows, std::span<const std::int32_t> slots,
           const Segments& sources, DecoderState& state) const;

 private:
  std::vector<DecoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

}  // namespace polyhead::nn
