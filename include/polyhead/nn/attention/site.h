#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace polyhead::nn {

/// The three uses of attention in the Transformer: self-attention of the encoder, masked self-attention of the decoder,
/// and attention from the decoder to the encoder's output.
enum class AttentionKind { encoder, decoder, cross };
inline constexpr std::array<std::string_view, 3> attention_kind_names{"encoder", "decoder", "cross"};
inline constexpr std::array attention_kinds{AttentionKind::encoder, AttentionKind::decoder,
                                            AttentionKind::cross};
constexpr std::string_view name(AttentionKind kind) {
  return attention_kind_names[static_cast<std::size_t>(kind)];
}

/// One attention of a model; layers count from 0, those of the encoder and of the decoder each.
struct AttentionSite {
  AttentionKind kind{};
  int layer = 0;
  friend bool operator==(const AttentionSite&, const AttentionSite&) = default;
};

}  // namespace polyhead::nn
