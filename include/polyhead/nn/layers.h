#pragma once

#include "polyhead/nn/context.h"
#include "polyhead/ops/activation.h"
#include "polyhead/tensor/segments.h"

namespace polyhead::nn {

/// y = f(x Wᵀ + b), W [out,in]; parameters `weight` and, when asked for, `bias`.
class Linear {
 public:
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool bias);
  Var operator()(const Context& context, Var x, ops::Activation activation = ops::Activation::none) const;

 private:
  const Parameter& weight_;
  const Parameter* bias_;
};

/// Layer normalisation; parameters `gamma` and `beta`.
class LayerNorm {
 public:
  LayerNorm(const Scope& scope, std::int64_t d_model);
  Var operator()(const Context& context, Var x) const;

 private:
  const Parameter& gamma_;
  const Parameter& beta_;
};

/// FFN(x) = W₂·dropout(f(W₁ x + b₁)) + b₂; `inner` and `outer`.
class FeedForward {
 public:
  FeedForward(const Scope& scope, std::int64_t d_model, std::int64_t d_ff, ops::Activation activation,
              double dropout, bool bias);
  Var operator()(const Context& context, Var x, const Segments& segments) const;

 private:
  Linear inner_, outer_;
  ops::Activation activation_;
  double dropout_;
  std::uint64_t site_;
};

/// The connection around a sub-layer f: post-norm LN(x + dropout(f(x))) (Vaswani et al. 2017) or pre-norm
/// x + dropout(f(LN(x))) (Wang et al. 2019, arXiv:1906.01787); `norm`.
class Residual {
 public:
  Residual(const Scope& scope, std::int64_t d_model, bool pre_norm, double dropout);
  template <class F>
  Var operator()(const Context& context, Var x, const Segments& segments, const F& f) const {
    return pre_norm_ ? add(context, x, f(norm_(context, x)), segments)
                     : norm_(context, add(context, x, f(x), segments));
  }

 private:
  Var add(const Context& context, Var x, Var f, const Segments& segments) const;
  LayerNorm norm_;
  bool pre_norm_;
  double dropout_;
  std::uint64_t site_;
};

}  // namespace polyhead::nn
