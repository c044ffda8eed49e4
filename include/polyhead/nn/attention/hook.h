#pragma once

#include <cstdint>
#include <functional>

#include "polyhead/autograd/tape.h"
#include "polyhead/nn/attention/site.h"
#include "polyhead/tensor/segments.h"

namespace polyhead::nn {

/// An attention that is about to be computed.
struct AttentionCall {
  AttentionSite site;
  std::int64_t heads, value_dim;
  const Segments &queries, &keys;
  bool causal;
  Tape& tape;
};

/// What an attention was computed of, and its heads' outputs before W^O.
struct AttentionFlow {
  const AttentionCall& call;
  Var query;   ///< [query rows, heads·head_dim]
  Var key;     ///< [key rows, heads·head_dim]
  Var value;   ///< [key rows, heads·value_dim]
  Var output;  ///< [query rows, heads·value_dim]: after gates and replacement
};

/// What it takes besides queries, keys and values (see ops::MultiHeadAttention). Each may be left out.
struct AttentionInputs {
  Tensor weights = {};      ///< receives the weights: [query rows, heads, keys of the longest sentence]
  Tensor logit_scale = {};  ///< [heads], times the scores; 0: uniform attention
  Var gates = {};           ///< ξ, of the call's tape: [1 or sentences, heads]
  Var replacement = {};     ///< what the head gives where ξ = 0: [1 or query rows, heads·value_dim]
  std::function<void(const AttentionFlow&)> observe = {};  ///< told once the heads' outputs are there
};

/// Asked at every attention of a forward pass.
using AttentionHook = std::function<AttentionInputs(const AttentionCall&)>;

}  // namespace polyhead::nn
