#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "polyhead/tensor/segments.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::nn {

/// The three uses of attention in the Transformer: self-attention of the encoder, masked self-attention of the decoder,
/// and attention from the decoder to the encoder's output.
enum class AttentionKind { encoder, decoder, cross };
inline constexpr std::array<std::string_view, 3> attention_kind_names{"encoder", "decoder", "cross"};
constexpr std::string_view name(AttentionKind kind) {
  return attention_kind_names[static_cast<std::size_t>(kind)];
}

/// One attention of a model; layers count from 0, those of the encoder and of the decoder each.
struct AttentionSite {
  AttentionKind kind{};
  int layer = 0;
  friend bool operator==(const AttentionSite&, const AttentionSite&) = default;
};

/// An attention that is about to be computed.
struct AttentionCall {
  AttentionSite site;
  std::int64_t heads;
  const Segments &queries, &keys;
};

/// What it takes besides queries, keys and values (see ops::MultiHeadAttention).
struct AttentionInputs {
  Tensor weights = {};  ///< receives the weights: [query rows, heads, keys of the longest sentence]; or empty
};

/// Asked at every attention of a forward pass.
using AttentionHook = std::function<AttentionInputs(const AttentionCall&)>;

}  // namespace polyhead::nn
