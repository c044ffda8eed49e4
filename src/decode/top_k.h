#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polyhead/tensor/tensor.h"

namespace polyhead::decode {

struct ScoredId {
  double value;
  std::int32_t id;
};

/// Selects the largest elements of rows; keeps its buffers.
class TopK {
 public:
  /// The k largest elements of `row` that are above −∞, in falling order, smaller ids first at ties; valid
  /// until the next call. `row` must not hold NaN.
  std::span<const ScoredId> operator()(const Tensor& row, std::size_t k);

 private:
  template <class T>
  void collect(std::span<const T> row, std::size_t k);
  std::vector<double> maxima_, order_;
  std::vector<ScoredId> best_;
};

}  // namespace polyhead::decode
