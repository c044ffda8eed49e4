#include "polyhead/nn/layers.h"

#include "polyhead/ops/dropout.h"
#include "polyhead/ops/layer_norm.h"
#include "polyhead/ops/linear.h"

namespace polyhead::nn {

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool bias)
    : weight_(scope.declare("weight", {out, in}, Init::xavier_uniform())),
      bias_(bias ? &scope.declare("bias", {out}, Init::zeros()) : nullptr) {}

Var Linear::operator()(const Context& context, Var x, ops::Activation activation) const {
  return context.tape.apply(ops::Linear{activation}, x, context(weight_), context(bias_));
}

LayerNorm::LayerNorm(const Scope& scope, std::int64_t d_model)
    : gamma_(scope.declare("gamma", {d_model}, Init::ones())),
      beta_(scope.declare("beta", {d_model}, Init::zeros())) {}

Var LayerNorm::operator()(const Context& context, Var x) const {
  return context.tape.apply(ops::LayerNorm{}, x, context(gamma_), context(beta_));
}

FeedForward::FeedForward(const Scope& scope, std::int64_t d_model, std::int64_t d_ff,
                         ops::Activation activation, double dropout, bool bias)
    : inner_(scope / "inner", d_model, d_ff, bias),
      outer_(scope / "outer", d_ff, d_model, bias),
      activation_(activation),
      dropout_(dropout),
      site_((scope / "dropout").site()) {}

Var FeedForward::operator()(const Context& context, Var x, const Segments& segments) const {
  Var hidden = inner_(context, x, activation_);
  if (dropout_ > 0) hidden = context.tape.apply(ops::Dropout{dropout_, site_, segments}, hidden);
  return outer_(context, hidden);
}

Residual::Residual(const Scope& scope, std::int64_t d_model, bool pre_norm, double dropout)
    : norm_(scope / "norm", d_model),
      pre_norm_(pre_norm),
      dropout_(dropout),
      site_((scope / "residual").site()) {}

Var Residual::add(const Context& context, Var x, Var f, const Segments& segments) const {
  return context.tape.apply(ops::ResidualDropout{dropout_, site_, segments}, x, f);
}

}  // namespace polyhead::nn
