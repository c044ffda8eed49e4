#include "polyhead/nn/attention/multi_head.h"

#include "polyhead/ops/attention.h"

namespace polyhead::nn {

MultiHeadAttention::MultiHeadAttention(const Scope& scope, const AttentionDimensions& d, AttentionSite site)
    : dimensions_(d),
      query_(scope / "query", d.d_model, d.heads * d.head_dim, d.bias),
      key_(scope / "key", d.d_model, d.heads * d.head_dim, d.bias),
      value_(scope / "value", d.d_model, d.heads * d.value_dim, d.bias),
      output_(scope / "output", d.heads * d.value_dim, d.d_model, d.bias),
      site_(site),
      dropout_site_((scope / "weights").site()) {}

Var MultiHeadAttention::attend(const Context& context, Var query, Var key, Var value, const Segments& queries,
                               const Segments& keys, bool causal) const {
  const AttentionInputs inputs =
      context.attention ? (*context.attention)({site_, dimensions_.heads, queries, keys}) : AttentionInputs{};
  const ops::MultiHeadAttention op{.heads = dimensions_.heads,
                                   .kv_heads = dimensions_.heads,
                                   .query_segments = queries,
                                   .key_segments = keys,
                                   .causal = causal,
                                   .dropout = dimensions_.dropout,
                                   .site = dropout_site_,
                                   .weights = inputs.weights};
  const Var none = context(nullptr);
  return output_(context, context.tape.apply(op, query, key, value, none, none));
}

KeyValues MultiHeadAttention::project(const Context& context, Var memory) const {
  return {key_(context, memory), value_(context, memory)};
}

Var MultiHeadAttention::self(const Context& context, Var x, const Segments& segments, bool causal) const {
  return attend(context, query_(context, x), key_(context, x), value_(context, x), segments, segments,
                causal);
}

Var MultiHeadAttention::cross(const Context& context, Var x, const Segments& targets, const KeyValues& memory,
                              const Segments& sources) const {
  return attend(context, query_(context, x), memory.keys, memory.values, targets, sources, false);
}

Var MultiHeadAttention::step(const Context& context, Var x, KvCache& cache, const Segments& rows,
                             std::span<const std::int32_t> slots) const {
  cache.append(project(context, x), slots);
  auto* keys = context.tape.exec().activations.allocate<Segment>(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) keys[i] = cache.segment(slots[i]);
  return attend(context, query_(context, x), context.tape.leaf(cache.keys()),
                context.tape.leaf(cache.values()), rows, {{keys, slots.size()}, rows.first}, true);
}

}  // namespace polyhead::nn
