#pragma once

#include <cstdint>

#include "polyhead/core/exec.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::ops {

/// The most probable words of each row of features x [N, d], given the output layer's weight W [V, d] and bias b [V] (or
/// empty):
///   ℓ = log softmax(W x + b),   the `count` largest ℓ_j with j ≠ excluded
/// The softmax is over all words, the excluded one too. Of V words only a tile exists at a time: the sum of the softmax is
/// kept as in ProjectedCrossEntropy (Milakov and Gimelshein 2018, arXiv:1805.02867), and with it the best words so far.
/// Has no gradient. Throws Error when extents do not fit.
struct MostLikely {
  std::int64_t count = 1;
  std::int32_t excluded = -1;

  /// Each row in falling order, smaller ids first at ties. A row with fewer words above −∞ ends with −∞ and ids of −1; one
  /// with a logit of NaN or ∞ holds NaN, and such ids. Both live among the activations.
  struct Words {
    Tensor log_probabilities;  ///< [N, count]
    Tensor ids;                ///< [N, count], i32
  };
  Words operator()(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& bias) const;
};

}  // namespace polyhead::ops
