#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace polyhead::ops {

/// relu(x) = max(x, 0);  gelu(x) = x·Φ(x), Φ the normal distribution function (exact, Hendrycks & Gimpel 2016,
/// arXiv:1606.08415);  swish(x) = x·σ(x) (Ramachandran et al. 2017, arXiv:1710.05941).
enum class Activation : std::uint8_t { none, relu, gelu, swish };

/// Names in a configuration; a layer always has one, so `none` is not among them.
inline std::vector<std::pair<Activation, std::string>> enum_names(Activation) {
  return {{Activation::relu, "relu"}, {Activation::gelu, "gelu"}, {Activation::swish, "swish"}};
}

}  // namespace polyhead::ops
