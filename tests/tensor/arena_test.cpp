#include "polyhead/tensor/arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "polyhead/core/memory.h"

namespace polyhead {
namespace {

TEST(Pages, BecomeUsableAsCommittedAndNeverMove) {
  Pages pages(std::size_t{1} << 30);
  std::byte* const data = pages.data();
  EXPECT_EQ(pages.committed(), 0u);
  pages.commit(10);
  EXPECT_GE(pages.committed(), 10u);
  EXPECT_EQ(data[9], std::byte{0});
  data[9] = std::byte{5};
  pages.commit(std::size_t{100} << 20);
  EXPECT_EQ(pages.data(), data);
  EXPECT_EQ(data[9], std::byte{5});
  data[(std::size_t{100} << 20) - 1] = std::byte{1};
  const std::size_t committed = pages.committed();
  pages.commit(1);  // never shrinks
  EXPECT_EQ(pages.committed(), committed);
}

TEST(Pages, RefuseMoreThanTheirCapacity) {
  Pages pages(std::size_t{4} << 20);
  try {
    pages.commit((std::size_t{4} << 20) + 1);
    FAIL() << "nothing was thrown";
  } catch (const MemoryError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("out of memory: no room for 4194305 bytes; expected ", 0), 0u)
        << error.what();
  }
}

TEST(Pages, Move) {
  Pages a(1 << 20);
  a.commit(100);
  a.data()[0] = std::byte{7};
  Pages b(std::move(a));
  EXPECT_EQ(b.data()[0], std::byte{7});
  Pages c(1 << 20);
  c = std::move(b);
  EXPECT_EQ(c.data()[0], std::byte{7});
}

TEST(Arena, TensorsAreAlignedApartAndWritable) {
  Arena arena;
  const Tensor a = arena.tensor({3}, DType::f32), b = arena.tensor({5, 7}, DType::f64),
               c = arena.zeros({2}, DType::i32);
  for (const Tensor& t : {a, b, c}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data) % 64, 0u);
  std::fill_n(a.as<float>(), 3, 1.0F);
  std::fill_n(b.as<double>(), 35, 2.0);
  EXPECT_EQ(c.as<std::int32_t>()[1], 0);
  EXPECT_EQ(a.as<float>()[2], 1);
  EXPECT_EQ(b.shape, (Shape{5, 7}));
}

TEST(Arena, RewindsToAMarkAndHandsTheMemoryOutAgain) {
  Arena arena;
  arena.tensor({100}, DType::f32);
  const Arena::Mark mark = arena.mark();
  const Tensor a = arena.tensor({1000}, DType::f32);
  std::fill_n(a.as<float>(), 1000, 3.0F);
  const std::size_t peak = arena.peak();
  arena.rewind(mark);
  const Tensor b = arena.zeros({500}, DType::f32);
  EXPECT_EQ(b.data, a.data);
  EXPECT_EQ(b.as<float>()[499], 0);  // zeros() clears what was there
  EXPECT_EQ(arena.peak(), peak);
}

TEST(Arena, ScopeGivesBackAtItsEnd) {
  Arena arena;
  arena.tensor({4}, DType::f32);
  const Arena::Mark before = arena.mark();
  {
    const ArenaScope scope(arena);
    arena.allocate<double>(1000);
    EXPECT_GT(arena.mark(), before);
  }
  EXPECT_EQ(arena.mark(), before);
}

TEST(Arena, GrowsBeyondItsFirstPagesWithoutMoving) {
  Arena arena;
  const Tensor first = arena.tensor({1}, DType::f32);
  *first.as<float>() = 42;
  const Tensor large = arena.tensor({64, 1 << 20}, DType::f32);
  large.as<float>()[large.size() - 1] = 1;
  EXPECT_EQ(*first.as<float>(), 42);
  EXPECT_GE(arena.peak(), large.bytes());
}

TEST(Arena, IsOfBlocksThatFollowEachOtherWhereAddressSpaceIsLimited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more address space";
#endif
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit limit{static_cast<rlim_t>(address_space_bytes() + (std::int64_t{200} << 20)), before.rlim_max};
  setrlimit(RLIMIT_AS, &limit);
  {
    Arena arena;
    EXPECT_LT(arena.capacity(), std::size_t{4} << 20);
    const Tensor first = arena.tensor({1}, DType::f32);
    *first.as<float>() = 42;
    const Arena::Mark mark = arena.mark();
    const auto take = [&](std::int64_t mebibytes) {
      const Tensor t = arena.tensor({mebibytes, 1 << 18}, DType::f32);
      std::fill_n(t.as<float>(), t.size(), 1.0F);
      return t;
    };
    const Tensor large = take(50), small = take(1);
    const std::size_t capacity = arena.capacity();
    EXPECT_LT(capacity, std::size_t{100} << 20);
    arena.rewind(mark);
    EXPECT_EQ(take(50).data, large.data);
    EXPECT_EQ(take(1).data, small.data);
    EXPECT_EQ(arena.capacity(), capacity);  // the second time as the first
    EXPECT_EQ(*first.as<float>(), 42);
    EXPECT_THROW(take(300), MemoryError);
  }
  setrlimit(RLIMIT_AS, &before);
}

TEST(Slab, IsOneZeroedTensor) {
  const Slab slab({1000}, DType::f64);
  EXPECT_EQ(slab.tensor().shape, Shape{1000});
  for (const double x : slab.tensor().span<double>()) EXPECT_EQ(x, 0);
  slab.tensor().as<double>()[999] = 5;
  EXPECT_EQ(slab.tensor().as<double>()[999], 5);
  EXPECT_EQ(Slab({0}, DType::f32).tensor().size(), 0);
}

}  // namespace
}  // namespace polyhead
