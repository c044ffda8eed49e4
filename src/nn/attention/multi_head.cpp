#include "polyhead/nn/attention/multi_head.h"

#include "polyhead/ops/attention.h"
#include "polyhead/ops/linear.h"

namespace polyhead::nn {

MultiHeadAttention::Projections::Projections(const Scope& scope, const AttentionDimensions& d)
    : query(scope / "query", d.d_model, d.heads * d.head_dim, d.bias),
      key(scope / "key", d.d_model, d.heads * d.head_dim, d.bias),
      value(scope / "value", d.d_model, d.heads * d.value_dim, d.bias),
      output(scope / "output", d.heads * d.value_dim, d.d_model, d.bias) {}

MultiHeadAttention::MultiHeadAttention(const Scope& scope, const AttentionDimensions& d, AttentionSite site)
    : dimensions_(d), site_(site), dropout_site_((scope / "weights").site()) {
  if (d.heads > 0)
    projections_.emplace(scope, d);
  else if (d.bias)
    output_bias_ = &(scope / "output").declare("bias", {d.d_model}, Init::zeros());
}

/// The output's bias in every row of x: what W^O makes of no features at all.
Var MultiHeadAttention::output_bias(const Context& context, Var x) const {
  Arena& arena = context.tape.exec().activations;
  const Tensor nothing = arena.zeros({x.shape()[0], 1}, x.dtype()),
               weight = arena.zeros({dimensions_.d_model, 1}, x.dtype());
  return context.tape.apply(ops::Linear{}, context.tape.leaf(nothing), context.tape.leaf(weight),
                            context(output_bias_));
}

Var MultiHeadAttention::attend(const Context& context, Var x, const KeyValues& memory,
                               const Segments& queries, const Segments& keys, bool causal) const {
  if (!projections_) return output_bias(context, x);
  const AttentionCall call{site_,  dimensions_.heads, dimensions_.value_dim, queries, keys,
                           causal, context.tape};
  const AttentionInputs inputs = context.attention ? (*context.attention)(call) : AttentionInputs{};
  const ops::MultiHeadAttention op{.heads = dimensions_.heads,
                                   .kv_heads = dimensions_.heads,
                                   .query_segments = queries,
                                   .key_segments = keys,
                                   .causal = causal,
                                   .dropout = dimensions_.dropout,
                                   .site = dropout_site_,
                                   .logit_scale = inputs.logit_scale,
                                   .weights = inputs.weights};
  const Var none = context(nullptr), query = projections_->query(context, x);
  const Var heads =
      context.tape.apply(op, query, memory.keys, memory.values, inputs.gates ? inputs.gates : none,
                         inputs.replacement ? inputs.replacement : none);
  if (inputs.observe) inputs.observe({call, query, memory.keys, memory.values, heads});
  return projections_->output(context, heads);
}

KeyValues MultiHeadAttention::project(const Context& context, Var memory) const {
  if (projections_) return {projections_->key(context, memory), projections_->value(context, memory)};
  const Var none =
      context.tape.leaf(context.tape.exec().activations.tensor({memory.shape()[0], 0}, memory.dtype()));
  return {none, none};
}

Var MultiHeadAttention::self(const Context& context, Var x, const Segments& segments, bool causal) const {
  if (!projections_) return output_bias(context, x);
  // In this order, as backward adds to the gradient of x in reverse: the bits of training depend on it.
  const Var value = projections_->value(context, x), key = projections_->key(context, x);
  return attend(context, x, {key, value}, segments, segments, causal);
}

Var MultiHeadAttention::cross(const Context& context, Var x, const Segments& targets, const KeyValues& memory,
                              const Segments& sources) const {
  return attend(context, x, memory, targets, sources, false);
}

KvCache MultiHeadAttention::cache(Arena& arena, std::int64_t slots, std::int64_t capacity,
                                  DType dtype) const {
  return {arena,
          slots,
          capacity,
          dimensions_.heads * dimensions_.head_dim,
          dimensions_.heads * dimensions_.value_dim,
          dtype};
}

Var MultiHeadAttention::step(const Context& context, Var x, KvCache& cache, const Segments& rows,
                             std::span<const std::int32_t> slots) const {
  cache.append(project(context, x), slots);
  auto* keys = context.tape.exec().activations.allocate<Segment>(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) keys[i] = cache.segment(slots[i]);
  return attend(context, x, {context.tape.leaf(cache.keys()), context.tape.leaf(cache.values())}, rows,
                {{keys, slots.size()}, rows.first}, true);
}

}  // namespace polyhead::nn
