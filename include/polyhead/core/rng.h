#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace polyhead {

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): four uniform 32-bit
/// words as a pure function of a 128-bit counter and a 64-bit key.
using PhiloxBlock = std::array<std::uint32_t, 4>;
PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key);

/// A key of the tree of random numbers. Every random number of a run is a function of the run's seed and of
/// what it is for: keys are derived by folding in the update, the site (a layer's path), and so on.
struct RngKey {
  std::uint64_t value = 0;
  RngKey fold(std::uint64_t data) const;
  RngKey fold(std::string_view path) const;
};

/// 64-bit FNV-1a of a path such as "encoder/layers/0/dropout".
constexpr std::uint64_t hash(std::string_view path) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : path) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

/// The random numbers of one key, one after the other: for shuffling and sampling.
class RandomStream {
 public:
  explicit RandomStream(RngKey key) : key_(key) {}
  std::uint32_t next();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in 0 … n − 1 without bias; n > 0.
  std::uint64_t below(std::uint64_t n);

 private:
  RngKey key_;
  std::uint64_t counter_ = 0;
  PhiloxBlock block_{};
  int left_ = 0;
};

/// Fisher–Yates shuffle.
template <class Range>
void shuffle(Range& range, RandomStream& random) {
  for (std::uint64_t i = range.size(); i > 1; --i) std::swap(range[i - 1], range[random.below(i)]);
}

}  // namespace polyhead
