#pragma once

#include <cstdint>

#include "polyhead/nn/config.h"

namespace polyhead::nn {

/// Floating-point operations of matrix products, a multiplication and an addition being two.
struct Flops {
  double linear = 0;     ///< of linear layers and the output projection
  double attention = 0;  ///< of queries with keys and of weights with values
  double total() const { return linear + attention; }
  Flops& operator+=(const Flops& other) {
    linear += other.linear;
    attention += other.attention;
    return *this;
  }
  friend Flops operator*(double factor, const Flops& f) { return {factor * f.linear, factor * f.attention}; }
};

/// Of the forward pass over a sentence pair of S source and T target tokens, end tokens included. With d = d_model,
/// h_e, h_d, h_c the heads of all layers of the encoder's, decoder's and cross-attention, w = head_dim + value_dim,
/// f = d_ff, V the target vocabulary, E encoder and D decoder layers:
///   linear     S·(4dw·h_e + E·4df) + T·(4dw·h_d + 2dw·h_c + D·4df) + S·2dw·h_c + T·2dV
///   attention  2w·(h_e·S² + h_d·T(T + 1)/2 + h_c·TS)
/// Masked self-attention counts the pairs that it allows. Padding, recomputation, what a loss has besides the
/// likelihood, and all that is not a matrix product count nothing.
Flops forward_flops(const ModelConfig& config, std::int64_t target_vocabulary, std::int64_t source_tokens,
                    std::int64_t target_tokens);

/// Forward and backward: three times the forward pass, as every product has two gradients of its size.
Flops training_flops(const ModelConfig& config, std::int64_t target_vocabulary, std::int64_t source_tokens,
                     std::int64_t target_tokens);

}  // namespace polyhead::nn
