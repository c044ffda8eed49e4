#include "polyhead/nn/attention/kv_cache.h"

#include <gtest/gtest.h>

#include "models.h"

namespace polyhead::nn {
namespace {

using namespace polyhead::testing;

class KvCaches : public ::testing::Test {
 protected:
  /// Rows of keys all equal to x and of values all equal to −x, one for each of `numbers`.
  KeyValues rows(const std::vector<double>& numbers) {
    const auto n = static_cast<std::int64_t>(numbers.size());
    const Tensor keys = w.activations.tensor({n, 3}, DType::f64),
                 values = w.activations.tensor({n, 2}, DType::f64);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::fill_n(keys.as<double>() + 3 * i, 3, numbers[i]);
      std::fill_n(values.as<double>() + 2 * i, 2, -numbers[i]);
    }
    return {tape.leaf(keys), tape.leaf(values)};
  }
  /// What slot s holds, read through its segment: the first key and value feature of every row.
  std::vector<double> content(std::int32_t slot) const {
    std::vector<double> result;
    const Segment s = cache.segment(slot);
    for (std::int32_t i = 0; i < s.length; ++i) {
      const double key = cache.keys().as<double>()[3 * (s.begin + i)];
      EXPECT_EQ(cache.values().as<double>()[2 * (s.begin + i) + 1], -key);
      result.push_back(key);
    }
    return result;
  }

  Workspace w;
  Tape tape{w.exec, false};
  KvCache cache{w.activations, 3, 2, 3, 2, DType::f64};
};

using List = std::vector<double>;

TEST_F(KvCaches, StartEmptyAndKeepRowsPerSlot) {
  EXPECT_EQ(cache.keys().shape, (Shape{6, 3}));
  EXPECT_EQ(cache.values().shape, (Shape{6, 2}));
  EXPECT_EQ(cache.segment(2), (Segment{4, 0}));
  cache.append(rows({1, 2}), std::vector<std::int32_t>{2, 0});
  cache.append(rows({3}), std::vector<std::int32_t>{2});
  EXPECT_EQ(content(0), List{2});
  EXPECT_EQ(content(1), List{});
  EXPECT_EQ(content(2), (List{1, 3}));
}

TEST_F(KvCaches, CopiesAreIndependent) {
  cache.append(rows({1, 5}), std::vector<std::int32_t>{0, 1});
  cache.copy_slot(0, 1);
  cache.append(rows({2}), std::vector<std::int32_t>{1});
  EXPECT_EQ(content(0), List{1});
  EXPECT_EQ(content(1), (List{1, 2}));
  cache.copy_slot(2, 1);
  EXPECT_EQ(content(1), List{});
}

TEST_F(KvCaches, AFullSlotIsAnError) {
  const std::vector<std::int32_t> slot{1};
  cache.append(rows({1}), slot);
  cache.append(rows({2}), slot);
  EXPECT_EQ(error_of([&] { cache.append(rows({3}), slot); }), "decoding past the 2 rows of the cache");
  EXPECT_EQ(content(1), (List{1, 2}));
}

TEST_F(KvCaches, MoreRowsThanASegmentCanNumberAreAnError) {
  EXPECT_EQ(error_of([&] { KvCache(w.activations, 1 << 20, 1 << 11, 3, 2, DType::f32); }),
            "a decoding cache of 1048576 hypotheses of 2048 tokens, expected at most 2147483647 rows "
            "(decoding.batch_tokens)");
}

}  // namespace
}  // namespace polyhead::nn
