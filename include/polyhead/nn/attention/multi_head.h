#pragma once

#include <optional>

#include "polyhead/nn/attention/kv_cache.h"
#include "polyhead/nn/layers.h"

namespace polyhead::nn {

/// Extents and dropout of multi-head attention.
struct AttentionDimensions {
  std::int64_t d_model = 0, heads = 1, head_dim = 0, value_dim = 0;
  double dropout = 0;  ///< on the attention weights
  bool bias = true;
};

/// MultiHead(x, m) = Concat(head_1 … head_h) W^O,  head_a = Attention(x W^Q_a, m W^K_a, m W^V_a)
/// with the h projections of queries (keys, values) as one matrix [h·d_k, d_model] reshaped into heads.
/// Vaswani et al. 2017, arXiv:1706.03762. Parameters `query`, `key`, `value`, `output`. Without heads what is left is the
/// bias of the output.
class MultiHeadAttention {
 public:
  /// `site` is how AttentionHook knows it.
  MultiHeadAttention(const Scope& scope, const AttentionDimensions& dimensions, AttentionSite site = {});

  /// Self-attention: every sentence over itself, causal or not.
  Var self(const Context& context, Var x, const Segments& segments, bool causal) const;
  /// Keys and values of an encoder's output, for cross().
  KeyValues project(const Context& context, Var memory) const;
  /// Cross-attention from the rows x of `targets` over `memory`, the rows of `sources`.
  Var cross(const Context& context, Var x, const Segments& targets, const KeyValues& memory,
            const Segments& sources) const;
  /// An empty cache for step().
  KvCache cache(Arena& arena, std::int64_t slots, std::int64_t capacity, DType dtype) const;
  /// Self-attention of one more row for each of `slots`: appends its key and value to `cache`, then attends
  /// over all that the slot holds.
  Var step(const Context& context, Var x, KvCache& cache, const Segments& rows,
           std::span<const std::int32_t> slots) const;

 private:
  struct Projections {
    Projections(const Scope& scope, const AttentionDimensions& dimensions);
    Linear query, key, value, output;
  };
  Var attend(const Context& context, Var x, const KeyValues& memory, const Segments& queries,
             const Segments& keys, bool causal) const;
  Var output_bias(const Context& context, Var x) const;
  AttentionDimensions dimensions_;
  std::optional<Projections> projections_;  // of heads
  const Parameter* output_bias_ = nullptr;  // without heads
  AttentionSite site_;
  std::uint64_t dropout_site_;
};

}  // namespace polyhead::nn
