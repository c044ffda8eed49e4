#pragma once

#include <cstdint>

#include "polyhead/ops/activation.h"

namespace polyhead::ops {

/// Whether f′ is computed from z; if not, from y = f(z).
constexpr bool gradient_needs_input(Activation a) { return a == Activation::gelu || a == Activation::swish; }

/// y = f(z) over n elements; y may be z.
template <class T>
void activate(Activation activation, const T* z, T* y, std::int64_t n);

/// g = ∂y ⊙ f′(z) over n elements; z_or_y is z where gradient_needs_input, else y.
template <class T>
void activation_gradient(Activation activation, const T* z_or_y, const T* dy, T* g, std::int64_t n);

}  // namespace polyhead::ops
