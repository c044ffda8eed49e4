#include "polyhead/kernels/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/check_op.h"

namespace polyhead::kernels {
namespace {

using ::polyhead::testing::error_of;

TEST(RandomBits, AreThePhiloxWordsOfTheirCounter) {
  const RngKey key{0x0123456789ABCDEFULL};
  for (const std::size_t n : {1u, 7u, 8u, 9u, 64u, 127u, 128u, 129u, 300u, 1024u})
    for (const std::uint32_t sentence : {0u, 5u, 0xFFFFFFFFu}) {
      std::vector<std::uint16_t> bits(n + 1, 0xABCD);
      random_bits(key, sentence, 17, 3, std::span(bits.data(), n));
      EXPECT_EQ(bits[n], 0xABCD);
      for (std::size_t i = 0; i < n; ++i) {
        const PhiloxBlock block = philox({static_cast<std::uint32_t>(i / 8), 17, sentence, 3}, key.value);
        ASSERT_EQ(bits[i], static_cast<std::uint16_t>(block[i % 8 / 2] >> (i % 2 * 16)))
            << "feature " << i << " of " << n;
      }
    }
}

TEST(RandomBits, DependOnEveryPartOfTheCounter) {
  const auto draw = [](std::uint64_t key, std::uint32_t sentence, std::uint32_t position,
                       std::uint32_t extra) {
    std::vector<std::uint16_t> bits(64);
    random_bits(RngKey{key}, sentence, position, extra, bits);
    return bits;
  };
  const auto bits = draw(1, 2, 3, 4);
  EXPECT_EQ(bits, draw(1, 2, 3, 4));
  EXPECT_NE(bits, draw(9, 2, 3, 4));
  EXPECT_NE(bits, draw(1, 9, 3, 4));
  EXPECT_NE(bits, draw(1, 2, 9, 4));
  EXPECT_NE(bits, draw(1, 2, 3, 9));
  EXPECT_NE(draw(1, 2, 3, 4), draw(1, 3, 2, 4));
}

TEST(RandomBits, AreUniform) {
  // 2^17 draws into 256 cells of the high byte, and of the low: χ² has mean 255 and deviation 22.6.
  std::vector<std::uint16_t> bits(128);
  std::vector<double> high(256), low(256);
  for (std::uint32_t row = 0; row < 1024; ++row) {
    random_bits(RngKey{11}, row / 32, row % 32, 0, bits);
    for (const std::uint16_t x : bits) ++high[x >> 8], ++low[x & 255];
  }
  for (const auto& cells : {high, low}) {
    double chi = 0;
    for (const double count : cells) chi += (count - 512) * (count - 512) / 512;
    EXPECT_NEAR(chi, 255, 5 * 22.6);
  }
}

TEST(DropoutRate, RoundsTheProbabilityAndScalesExactly) {
  EXPECT_EQ(DropoutRate(0).threshold, 0u);
  EXPECT_EQ(DropoutRate(0).scale, 1.0);
  EXPECT_EQ(DropoutRate(0.5).threshold, 32768u);
  EXPECT_EQ(DropoutRate(0.5).scale, 2.0);
  EXPECT_EQ(DropoutRate(0.1).threshold, 6554u);
  EXPECT_EQ(DropoutRate(0.1).scale, 65536.0 / (65536 - 6554));
  EXPECT_EQ(DropoutRate(std::nextafter(1.0, 0.0)).threshold, 65535u);  // never everything
  EXPECT_EQ(DropoutRate(std::nextafter(1.0, 0.0)).scale, 65536.0);
}

TEST(DropoutRate, RefusesWhatIsNoProbability) {
  EXPECT_EQ(error_of([] { DropoutRate(1.0); }),
            "a dropout probability of 1, expected at least 0 and below 1");
  EXPECT_EQ(error_of([] { DropoutRate(-0.25); }),
            "a dropout probability of -0.25, expected at least 0 and below 1");
  EXPECT_EQ(error_of([] { DropoutRate(std::numeric_limits<double>::quiet_NaN()); }),
            "a dropout probability of nan, expected at least 0 and below 1");
}

}  // namespace
}  // namespace polyhead::kernels
