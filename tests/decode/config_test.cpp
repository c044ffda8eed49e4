#include "polyhead/decode/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "polyhead/config/yaml.h"

namespace polyhead::decode {
namespace {

TEST(DecodingConfig, PenaltiesAreThoseOfTheFormulas) {
  DecodingConfig config;
  config.length_penalty = 0.6;
  EXPECT_DOUBLE_EQ(config.penalty(7), std::pow(2.0, 0.6));
  config.length_penalty_kind = LengthPenalty::length;
  config.length_penalty = 1;
  EXPECT_DOUBLE_EQ(config.penalty(7), 7);
  config.length_penalty_kind = LengthPenalty::none;
  EXPECT_DOUBLE_EQ(config.penalty(7), 1);
}

TEST(DecodingConfig, TargetLimitStaysWithinTheModel) {
  DecodingConfig config;
  config.max_length_ratio = 1.5;
  config.max_length_extra = 3;
  EXPECT_EQ(config.target_limit(5, 100), 10);
  EXPECT_EQ(config.target_limit(90, 100), 100);
  config.max_length_ratio = 0;
  config.max_length_extra = 0;
  EXPECT_EQ(config.target_limit(5, 100), 1);
}

TEST(DecodingConfig, RefusesMoreTranslationsThanTheBeamHolds) {
  const auto parse = [](const char* text) { return config::parse<DecodingConfig>(text, "d.yaml"); };
  EXPECT_EQ(parse("beam_size: 3\nlength_penalty_kind: length\n").beam_size, 3);
  EXPECT_EQ(parse("method: sampling\nnbest: 9\n").nbest, 9);
  try {
    parse("beam_size: 3\nnbest: 4\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "d.yaml:2: nbest: 4 is more than beam_size 3 can give");
  }
}

}  // namespace
}  // namespace polyhead::decode
