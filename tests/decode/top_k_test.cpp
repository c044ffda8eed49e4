#include "decode/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "polyhead/core/rng.h"

namespace polyhead::decode {
namespace {

/// The ids of the k largest by sorting everything.
template <class T>
std::vector<std::int32_t> by_sorting(const std::vector<T>& row, std::size_t k) {
  std::vector<std::int32_t> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto value = [&](std::int32_t id) { return row[static_cast<std::size_t>(id)]; };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int32_t a, std::int32_t b) { return value(a) > value(b); });
  std::erase_if(ids, [&](std::int32_t id) { return value(id) == -std::numeric_limits<T>::infinity(); });
  ids.resize(std::min(k, ids.size()));
  return ids;
}

template <class T>
void compare(std::size_t n, std::size_t k, std::uint64_t distinct) {
  RandomStream random(RngKey{n * 1000 + k});
  std::vector<T> row(n);
  for (T& x : row) x = static_cast<T>(random.below(distinct)) / T{4} - T{100};
  if (n > 1) row[1] = -std::numeric_limits<T>::infinity();
  TopK top_k;
  std::vector<std::int32_t> ids;
  for (const ScoredId& x : top_k({row.data(), {1, static_cast<std::int64_t>(n)}, dtype_of<T>()}, k)) {
    EXPECT_EQ(x.value, row[static_cast<std::size_t>(x.id)]);
    ids.push_back(x.id);
  }
  EXPECT_EQ(ids, by_sorting(row, k)) << n << ' ' << k << ' ' << distinct;
}

TEST(TopK, EqualsSorting) {
  for (const std::size_t n : {1u, 2u, 5u, 127u, 128u, 129u, 1000u, 10007u})
    for (const std::size_t k : {0u, 1u, 2u, 10u, 100u, 20000u})
      for (const std::uint64_t distinct : {1u, 3u, 1000000u}) {
        compare<float>(n, k, distinct);
        compare<double>(n, k, distinct);
      }
}

}  // namespace
}  // namespace polyhead::decode
