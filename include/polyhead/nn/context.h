#pragma once

#include "polyhead/autograd/tape.h"
#include "polyhead/nn/attention/hook.h"
#include "polyhead/nn/parameters.h"

namespace polyhead::nn {

/// What a layer's forward pass is given besides its input.
struct Context {
  Tape& tape;
  const ParameterStore& parameters;
  Tensor gradients = {};  ///< slab that backward adds parameters' gradients into; empty: none wanted
  const AttentionHook* attention = nullptr;  ///< null: attention takes queries, keys and values alone

  Var operator()(const Parameter& p) const {
    return tape.leaf(parameters.value(p), gradients ? ParameterStore::view(p, gradients) : Tensor{});
  }
  /// An optional parameter (a bias): the empty value where there is none.
  Var operator()(const Parameter* p) const {
    return p ? (*this)(*p) : tape.leaf(Tensor{nullptr, {}, parameters.dtype()});
  }
};

}  // namespace polyhead::nn
