#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "polyhead/config/fields.h"
#include "polyhead/nn/head_counts.h"
#include "polyhead/ops/activation.h"

namespace polyhead::nn {

enum class Norm { pre, post };
enum class Positions { sinusoidal, learned, none };
enum class TieEmbeddings { none, target, all };

inline config::EnumNames<Norm> enum_names(Norm) { return {{Norm::pre, "pre"}, {Norm::post, "post"}}; }
inline config::EnumNames<Positions> enum_names(Positions) {
  return {{Positions::sinusoidal, "sinusoidal"}, {Positions::learned, "learned"}, {Positions::none, "none"}};
}
inline config::EnumNames<TieEmbeddings> enum_names(TieEmbeddings) {
  return {{TieEmbeddings::none, "none"}, {TieEmbeddings::target, "target"}, {TieEmbeddings::all, "all"}};
}
inline config::EnumNames<AttentionKind> enum_names(AttentionKind) {
  return {{AttentionKind::encoder, "encoder"},
          {AttentionKind::decoder, "decoder"},
          {AttentionKind::cross, "cross"}};
}

/// The Transformer's settings: section `model`.
struct ModelConfig {
  int encoder_layers = 6;
  int decoder_layers = 6;
  int d_model = 512;
  HeadCounts heads = 8;
  std::optional<int> head_dim;   // d_model / heads where not given
  std::optional<int> value_dim;  // head_dim where not given
  int d_ff = 2048;
  ops::Activation activation = ops::Activation::relu;
  Norm norm = Norm::post;
  double dropout = 0.1;
  double attention_dropout = 0;
  double activation_dropout = 0;
  Positions positions = Positions::sinusoidal;
  int max_length = 1024;
  TieEmbeddings tie_embeddings = TieEmbeddings::target;
  bool bias = true;

  /// Features of a query and of a key of one head.
  int key_width() const { return head_dim ? *head_dim : d_model / std::max(1, int{heads}); }
  /// Features of a value of one head.
  int value_width() const { return value_dim.value_or(key_width()); }
  /// Layers that have this kind of attention.
  int layers(AttentionKind kind) const {
    return kind == AttentionKind::encoder ? encoder_layers : decoder_layers;
  }
  /// Heads of all layers of a kind.
  int total_heads(AttentionKind kind) const;
  bool operator==(const ModelConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    using namespace config;
    v("encoder_layers", encoder_layers, "layers of the encoder", between(1, 64));
    v("decoder_layers", decoder_layers, "layers of the decoder", between(1, 64));
    v("d_model", d_model, "features of a token between layers", between(1, 8192));
    v("heads", heads,
      "attention heads of a layer; or numbers of their own for every layer of each kind of attention, 0 to "
      "1024",
      between(1, 1024));
    v("head_dim", head_dim, "features of a query and a key of one head; null: d_model / heads",
      between(1, 8192));
    v("value_dim", value_dim, "features of a value of one head; null: head_dim", between(1, 8192));
    v("d_ff", d_ff, "inner features of the feed-forward layers", between(1, 65536));
    v("activation", activation, "of the feed-forward layers");
    v("norm", norm, "layer norm before each sub-layer, or after its residual connection");
    v("dropout", dropout, "on embeddings and on every sub-layer's output", at_least(0), below(1));
    v("attention_dropout", attention_dropout, "on attention weights", at_least(0), below(1));
    v("activation_dropout", activation_dropout, "inside the feed-forward layers", at_least(0), below(1));
    v("positions", positions, "how tokens know where they stand");
    v("max_length", max_length, "most tokens of a sentence, end token included", between(2, 65536));
    v("tie_embeddings", tie_embeddings, "target: embedding and output share a matrix; all: the source's too");
    v("bias", bias, "biases in linear layers and in the output");
  }

  void validate(config::Problems& problems) const {
    validate_heads(problems);
    if (positions == Positions::sinusoidal && d_model % 2 != 0)
      problems.add("d_model", d_model, " is odd, expected an even number for sinusoidal positions");
  }

 private:
  void validate_heads(config::Problems& problems) const;
};

}  // namespace polyhead::nn
