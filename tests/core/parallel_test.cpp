#include "polyhead/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace polyhead {
namespace {

TEST(ParallelFor, CallsEveryIndexOnceWithAWorkerBelowThreads) {
  for (const int threads : {1, 2, 5}) {
    std::vector<int> calls(100);
    std::atomic<bool> bad = false;
    parallel_for(threads, 100, [&](std::int64_t i, int worker) {
      ++calls[static_cast<std::size_t>(i)];
      if (worker < 0 || worker >= threads) bad = true;
    });
    EXPECT_EQ(calls, std::vector<int>(100, 1));
    EXPECT_FALSE(bad);
  }
}

TEST(ParallelFor, NoIndicesNoCalls) {
  parallel_for(3, 0, [](std::int64_t, int) { FAIL(); });
}

TEST(ParallelFor, AWorkerRunsOneBodyAtATime) {
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> overlap = false;
  parallel_for(4, 200, [&](std::int64_t, int worker) {
    auto& count = inside[static_cast<std::size_t>(worker)];
    if (count.fetch_add(1) != 0) overlap = true;
    count.fetch_sub(1);
  });
  EXPECT_FALSE(overlap);
}

TEST(ParallelFor, LibrariesInsideABodySeeOneThread) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2}) {
    std::vector<int> offered(8);
    parallel_for(threads, 8,
                 [&](std::int64_t i, int) { offered[static_cast<std::size_t>(i)] = omp_get_max_threads(); });
    EXPECT_EQ(offered, std::vector<int>(8, 1));
  }
  EXPECT_EQ(omp_get_max_threads(), before);
}

TEST(ParallelFor, RethrowsTheErrorOfTheSmallestIndexAfterAllHaveEnded) {
  for (const int threads : {1, 2, 4}) {
    std::atomic<int> ended = 0;
    try {
      parallel_for(threads, 50, [&](std::int64_t i, int) {
        ++ended;
        if (i == 7 || i == 8 || i == 30) throw std::runtime_error("index " + std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "index 7");
    }
    EXPECT_EQ(ended, 50);
  }
}

}  // namespace
}  // namespace polyhead
