#include "polyhead/core/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace polyhead {
namespace {

// The known answers of philox4x32-10 that come with Random123 (Salmon et al. 2011).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffffULL),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of π.
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822ULL),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Hash, IsFnv1a) {
  EXPECT_EQ(hash(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8ULL);
}

TEST(RngKey, FoldedKeysDifferByKeyAndData) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < 20; ++key)
    for (std::uint64_t data = 0; data < 50; ++data) keys.insert(RngKey{key}.fold(data).value);
  EXPECT_EQ(keys.size(), 1000u);
  EXPECT_NE(RngKey{1}.fold(2).fold(3).value, RngKey{1}.fold(3).fold(2).value);
  EXPECT_EQ(RngKey{1}.fold("encoder").value, RngKey{1}.fold(hash("encoder")).value);
  EXPECT_NE(RngKey{1}.fold(1).value, RngKey{1}.fold(std::uint64_t{1} << 32).value);  // all 64 bits count
}

TEST(RandomStream, IsAFunctionOfItsKey) {
  RandomStream a(RngKey{5}), b(RngKey{5}), c(RngKey{6});
  bool differ = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t x = a.next();
    EXPECT_EQ(x, b.next());
    differ |= x != c.next();
  }
  EXPECT_TRUE(differ);
  RandomStream blocks(RngKey{5});
  for (std::uint32_t counter = 0; counter < 3; ++counter)
    for (const std::uint32_t word : philox({counter, 0, 0, 0}, 5)) EXPECT_EQ(blocks.next(), word);
}

TEST(RandomStream, UniformHasItsMoments) {
  RandomStream random(RngKey{9});
  double sum = 0, squares = 0;
  constexpr int n = 100'000;
  for (int i = 0; i < n; ++i) {
    const double x = random.uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / 316);
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * 0.2981 / 316);
}

TEST(RandomStream, BelowReachesEveryResultEquallyOften) {
  RandomStream random(RngKey{9});
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < 30'000; ++i) ++counts[random.below(6)];
  ASSERT_EQ(counts.size(), 6u);
  EXPECT_EQ(counts.rbegin()->first, 5u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 5000, 5 * 65) << value;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.below(1), 0u);
  const std::uint64_t large = (std::uint64_t{1} << 63) + 1;  // nearly half of all draws are refused
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(large), large);
}

TEST(Shuffle, IsAPermutationAndFavoursNone) {
  std::map<std::vector<int>, int> counts;
  RandomStream random(RngKey{4});
  for (int i = 0; i < 24'000; ++i) {
    std::vector<int> v{1, 2, 3, 4};
    shuffle(v, random);
    ++counts[v];
  }
  ASSERT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, 1000, 5 * 31);
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), std::vector<int>{1, 2, 3, 4}.begin()));
  }
  std::vector<int> none;
  shuffle(none, random);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace polyhead
