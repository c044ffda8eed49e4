#include "polyhead/train/slab_reduce.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "polyhead/core/memory.h"
#include "polyhead/core/rng.h"
#include "support/check_op.h"

namespace polyhead::train {
namespace {

constexpr std::int64_t slab_size = 1000;

struct Sum {
  std::vector<double> gradients;
  ShardTotals totals;
  bool operator==(const Sum&) const = default;
};

/// What shard i contributes: numbers of very different sizes, whose sum depends on the order.
Sum contribution(std::int64_t shard) {
  RandomStream random(RngKey{5}.fold(static_cast<std::uint64_t>(shard)));
  Sum sum;
  for (std::int64_t i = 0; i < slab_size; ++i)
    sum.gradients.push_back(
        static_cast<float>((random.uniform() - 0.5) * std::pow(10, 8 * random.uniform())));
  sum.totals = {random.uniform(), random.uniform(), static_cast<double>(shard + 1), 1};
  return sum;
}

void add(Sum& left, const Sum& right) {
  for (std::size_t i = 0; i < left.gradients.size(); ++i)
    left.gradients[i] = static_cast<float>(left.gradients[i]) + static_cast<float>(right.gradients[i]);
  left.totals += right.totals;
}

/// The definition: pairs of neighbours, level by level.
Sum serial_tree(std::int64_t shards) {
  std::vector<Sum> level;
  for (std::int64_t i = 0; i < shards; ++i) level.push_back(contribution(i));
  while (level.size() > 1) {
    std::vector<Sum> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      next.push_back(level[i]);
      if (i + 1 < level.size()) add(next.back(), level[i + 1]);
    }
    level = next;
  }
  return level[0];
}

void work(TreeReduction& reduction, std::int64_t shard) {
  const Tensor gradients = reduction.acquire(shard);
  const Sum sum = contribution(shard);
  for (std::int64_t i = 0; i < slab_size; ++i) {
    ASSERT_EQ(gradients.as<float>()[i], 0);
    gradients.as<float>()[i] += static_cast<float>(sum.gradients[static_cast<std::size_t>(i)]);
  }
  reduction.complete(shard, sum.totals);
}

Sum result(const TreeReduction& reduction) {
  return {polyhead::testing::values(reduction.gradients()), reduction.totals()};
}

TEST(TreeReductionTest, AnyOrderGivesTheBitsOfTheSerialTree) {
  TreeReduction reduction(17, slab_size, DType::f32);
  RandomStream random(RngKey{6});
  for (std::int64_t shards = 1; shards <= 17; ++shards) {
    const Sum expected = serial_tree(shards);
    for (int repeat = 0; repeat < 5; ++repeat) {
      std::vector<std::int64_t> order;
      for (std::int64_t i = 0; i < shards; ++i) order.push_back(i);
      shuffle(order, random);
      reduction.begin(shards);
      for (const std::int64_t shard : order) work(reduction, shard);
      ASSERT_EQ(result(reduction), expected) << shards << " shards";
    }
  }
}

TEST(TreeReductionTest, AnyThreadsGiveTheBitsOfTheSerialTree) {
  TreeReduction reduction(17, slab_size, DType::f32);
  RandomStream random(RngKey{7});
  for (std::int64_t shards = 1; shards <= 17; ++shards) {
    const Sum expected = serial_tree(shards);
    for (const int threads : {2, 5}) {
      std::vector<std::int64_t> order;
      for (std::int64_t i = 0; i < shards; ++i) order.push_back(i);
      shuffle(order, random);
      reduction.begin(shards);
      std::atomic<std::size_t> next{0};
      std::vector<std::thread> workers;
      for (int t = 0; t < threads; ++t)
        workers.emplace_back([&] {
          for (std::size_t i = next++; i < order.size(); i = next++) work(reduction, order[i]);
        });
      for (std::thread& worker : workers) worker.join();
      ASSERT_EQ(result(reduction), expected) << shards << " shards, " << threads << " threads";
    }
  }
}

TEST(TreeReductionTest, TwoHalvesAddUpToTheWhole) {
  // Shards 0 to 7 and 8 to 15 are the two subtrees of 16: accumulating 8 lanes twice is one step of 16 lanes.
  std::vector<Sum> contributions;
  Sum left = serial_tree(8), right = contribution(8);
  TreeReduction reduction(16, slab_size, DType::f32);
  reduction.begin(8);
  for (std::int64_t i = 0; i < 8; ++i) {
    const Tensor gradients = reduction.acquire(i);
    const Sum sum = contribution(8 + i);
    std::copy(sum.gradients.begin(), sum.gradients.end(), gradients.as<float>());
    reduction.complete(i, sum.totals);
  }
  right = result(reduction);
  add(left, right);
  EXPECT_EQ(left, serial_tree(16));
}

TEST(TreeReductionTest, UsesFewSlabsInOrder) {
  TreeReduction reduction(64, slab_size, DType::f32);
  reduction.begin(64);
  std::set<const void*> used;
  for (std::int64_t i = 0; i < 64; ++i) {
    used.insert(reduction.acquire(i).data);
    reduction.complete(i, {});
  }
  EXPECT_LE(used.size(), 7U);  // one at work and at most one waiting on each of six levels
}

TEST(TreeReductionTest, SaysHowMuchItTouches) {
  EXPECT_EQ(TreeReduction(8, 100, DType::f32).touched_bytes(1), 4 * in_huge_pages(400));
  EXPECT_EQ(TreeReduction(8, 100, DType::f64).touched_bytes(2), 5 * in_huge_pages(800));
  EXPECT_EQ(TreeReduction(3, 100, DType::f32).touched_bytes(64), 3 * in_huge_pages(400));
  EXPECT_EQ(TreeReduction(1, 100, DType::f32).touched_bytes(1), in_huge_pages(400));
}

TEST(TreeReductionTest, AnAbandonedStepIsDropped) {
  TreeReduction reduction(4, slab_size, DType::f32);
  reduction.begin(4);
  for (const std::int64_t shard : {0, 1, 2}) work(reduction, shard);
  reduction.acquire(3);
  reduction.begin(3);
  for (const std::int64_t shard : {2, 0, 1}) work(reduction, shard);
  EXPECT_EQ(result(reduction), serial_tree(3));
}

TEST(TreeReductionTest, SumsDoubles) {
  TreeReduction reduction(2, 3, DType::f64);
  reduction.begin(2);
  for (const std::int64_t shard : {0, 1}) {
    reduction.acquire(shard).as<double>()[1] = 0.25 + static_cast<double>(shard);
    reduction.complete(shard, {1, 2, 3, 4});
  }
  EXPECT_EQ(polyhead::testing::values(reduction.gradients()), (std::vector<double>{0, 1.5, 0}));
  EXPECT_EQ(reduction.totals(), (ShardTotals{2, 4, 6, 8}));
}

TEST(TreeReductionTest, RefusesMisuse) {
  using polyhead::testing::error_of;
  EXPECT_EQ(error_of([] { TreeReduction(0, slab_size, DType::f32); }),
            "a sum of at most 0 shards, expected at least 1");
  TreeReduction reduction(4, slab_size, DType::f32);
  EXPECT_EQ(error_of([&] { reduction.begin(5); }), "a step of 5 shards, expected 1 to 4");
  EXPECT_EQ(error_of([&] { reduction.begin(0); }), "a step of 0 shards, expected 1 to 4");
  reduction.begin(3);
  reduction.acquire(1);
  EXPECT_EQ(error_of([&] { reduction.acquire(3); }), "shard 3, expected 0 to 2");
  EXPECT_EQ(error_of([&] { reduction.acquire(1); }), "shard 1 was acquired twice in a step");
  EXPECT_EQ(error_of([&] { reduction.complete(0, {}); }), "shard 0 was completed but is not being worked on");
  EXPECT_EQ(error_of([&] { reduction.gradients(); }),
            "the sum of a step was read before all of its 3 shards were complete");
}

}  // namespace
}  // namespace polyhead::train
