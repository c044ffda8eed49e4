#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/check_op.h"

namespace polyhead::testing {

/// Of every row of x [N, heads·dim] the mean cosine over all ordered pairs of heads, summed over rows, one pair at a time.
inline double head_cosine(const Tensor& x, std::int64_t heads) {
  const std::int64_t dim = x.cols() / heads;
  const std::vector<double> in = values(x);
  double total = 0;
  for (std::int64_t row = 0; row < x.shape[0]; ++row)
    for (std::int64_t i = 0; i < heads; ++i)
      for (std::int64_t j = 0; j < heads; ++j) {
        double product = 0, first = 0, second = 0;
        for (std::int64_t c = 0; c < dim; ++c) {
          const double a = in[static_cast<std::size_t>((row * heads + i) * dim + c)],
                       b = in[static_cast<std::size_t>((row * heads + j) * dim + c)];
          product += a * b;
          first += a * a;
          second += b * b;
        }
        total += product / std::sqrt(first * second);
      }
  return total / static_cast<double>(heads * heads);
}

}  // namespace polyhead::testing
