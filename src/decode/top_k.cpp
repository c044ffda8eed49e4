#include "top_k.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "polyhead/kernels/vector_math.h"

namespace polyhead::decode {
namespace {

constexpr std::size_t chunk = 128;

bool before(const ScoredId& a, const ScoredId& b) {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

}  // namespace

/// The k-th largest of the chunks' maxima is not above the k-th largest element, so that one vectorised pass
/// leaves about k chunks to be looked at element by element.
template <class T>
void TopK::collect(std::span<const T> row, std::size_t k) {
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  maxima_.clear();
  for (std::size_t begin = 0; begin < row.size(); begin += chunk)
    maxima_.push_back(kernels::max(row.subspan(begin, std::min(chunk, row.size() - begin))));
  double threshold = lowest;
  if (k <= maxima_.size()) {
    order_ = maxima_;
    const auto kth = order_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(order_.begin(), kth, order_.end(), std::greater<>());
    threshold = *kth;
  }
  for (std::size_t c = 0; c < maxima_.size(); ++c) {
    if (maxima_[c] < threshold) continue;
    const std::size_t end = std::min(row.size(), (c + 1) * chunk);
    for (std::size_t i = c * chunk; i < end; ++i)
      if (row[i] >= threshold && row[i] > lowest) best_.push_back({row[i], static_cast<std::int32_t>(i)});
  }
}

std::span<const ScoredId> TopK::operator()(const Tensor& row, std::size_t k) {
  best_.clear();
  if (k == 0) return best_;
  dispatch(row.dtype, [&]<class T>() { collect(std::span<const T>(row.span<T>()), k); });
  const std::size_t count = std::min(k, best_.size());
  std::partial_sort(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(count), best_.end(), before);
  return {best_.data(), count};
}

}  // namespace polyhead::decode
