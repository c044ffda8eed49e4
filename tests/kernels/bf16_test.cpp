#include "polyhead/kernels/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "polyhead/core/rng.h"
#include "polyhead/kernels/gemm.h"
#include "polyhead/tensor/arena.h"
#include "support/check_op.h"

namespace polyhead::kernels {
namespace {

using ::polyhead::testing::error_of;
using ::polyhead::testing::random_tensor;

BFloat16 rounded(float x) {
  BFloat16 y;
  to_bf16({&x, 1}, {&y, 1});
  return y;
}

TEST(BFloat16, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 x{static_cast<std::uint16_t>(bits)};
    const float value = to_float(x);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(to_float(rounded(value)))) << bits;
    else
      EXPECT_EQ(rounded(value).bits, bits);
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  RandomStream random(RngKey{3});
  for (int i = 0; i < 100'000; ++i) {
    // A value, its successor, and a point between them.
    const auto low = static_cast<std::uint16_t>(random.below(0x7F7F));
    const double a = static_cast<double>(to_float({low})),
                 b = static_cast<double>(to_float({static_cast<std::uint16_t>(low + 1)}));
    const std::uint64_t fraction = i % 3 == 0 ? 0x8000 : random.below(0x10000);
    const float x =
        std::bit_cast<float>(static_cast<std::uint32_t>(low) << 16 | static_cast<std::uint32_t>(fraction));
    const double below = static_cast<double>(x) - a, above = b - static_cast<double>(x);
    const bool up = above < below || (above == below && low % 2 == 1);
    ASSERT_EQ(rounded(x).bits, up ? low + 1 : low) << x;
    ASSERT_EQ(rounded(-x).bits, (up ? low + 1 : low) | 0x8000) << x;
  }
}

TEST(BFloat16, KeepsNaNAndOverflowsToInfinity) {
  EXPECT_TRUE(std::isnan(to_float(rounded(std::bit_cast<float>(0x7F800001U)))));
  EXPECT_TRUE(std::isnan(to_float(rounded(std::bit_cast<float>(0xFFFFFFFFU)))));
  EXPECT_EQ(to_float(rounded(std::numeric_limits<float>::infinity())),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_float(rounded(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
}

Tensor rounded(Arena& arena, const Tensor& x) {
  const Tensor y = arena.tensor(x.shape, DType::bf16);
  to_bf16(x.span<float>(), y.span<BFloat16>());
  return y;
}

TEST(BFloat16, ProductsAreThoseOfTheRoundedOperands) {
  if (!has_bf16()) GTEST_SKIP() << "this machine has no products of bf16";
  for (const Transpose ta : {Transpose::no, Transpose::yes})
    for (const Transpose tb : {Transpose::no, Transpose::yes})
      for (const bool accumulate : {false, true})
        for (const auto& [m, n, k] :
             {std::tuple{1, 1, 1}, {5, 7, 3}, {33, 16, 64}, {130, 48, 31}, {1291, 24, 16}, {24, 16, 1291}}) {
          SCOPED_TRACE(::testing::Message() << m << " " << n << " " << k);
          Arena arena, scratch;
          const bool at = ta == Transpose::yes, bt = tb == Transpose::yes;
          const Tensor a =
              rounded(arena, random_tensor(arena, at ? Shape{k, m} : Shape{m, k}, DType::f32, 1));
          const Tensor b =
              rounded(arena, random_tensor(arena, bt ? Shape{n, k} : Shape{k, n}, DType::f32, 2));
          const Tensor c = random_tensor(arena, {m, n}, DType::f32, 3),
                       before = arena.tensor(c.shape, c.dtype);
          copy(c, before);
          gemm(scratch, ta, tb, a, b, c, accumulate);
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double sum = accumulate ? static_cast<double>(before.as<float>()[i * n + j]) : 0;
              for (std::int64_t l = 0; l < k; ++l)
                sum += static_cast<double>(to_float(a.as<BFloat16>()[at ? l * m + i : i * k + l])) *
                       static_cast<double>(to_float(b.as<BFloat16>()[bt ? j * k + l : l * n + j]));
              ASSERT_NEAR(static_cast<double>(c.as<float>()[i * n + j]), sum,
                          1.2e-7 * static_cast<double>(k + 4));
            }
        }
}

TEST(BFloat16, SaysWhichOperandIsNotBf16) {
  if (!has_bf16()) GTEST_SKIP() << "this machine has no products of bf16";
  Arena arena, scratch;
  const Tensor a = arena.zeros({2, 2}, DType::bf16), b = arena.zeros({2, 2}, DType::f32);
  EXPECT_EQ(error_of([&] { gemm(scratch, Transpose::no, Transpose::no, a, b, b, false); }),
            "a tensor of f32 was read as bf16");
}

}  // namespace
}  // namespace polyhead::kernels
