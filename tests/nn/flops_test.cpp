#include "polyhead/nn/flops.h"

#include <gtest/gtest.h>

namespace polyhead::nn {
namespace {

TEST(Flops, AreThoseCountedByHand) {
  const ModelConfig c{.encoder_layers = 1,
                      .decoder_layers = 1,
                      .d_model = 4,
                      .heads = 2,
                      .head_dim = {},
                      .value_dim = {},
                      .d_ff = 8};
  // A linear layer 4 -> 4 costs 32 a row, 4 -> 8 and 8 -> 4 cost 64 each, the output 4 -> 5 costs 40.
  // Encoder: 2 rows of 4·32 + 2·64; decoder: 3 rows of 6·32 + 2·64, 2 rows of memory of 2·32; output: 3 rows.
  const Flops f = forward_flops(c, 5, 2, 3);
  EXPECT_EQ(f.linear, 2 * 256 + 3 * 320 + 2 * 64 + 3 * 40);
  // A pair of positions costs 2·4 for its score and 2·4 for its value: 4 in the encoder, 6 masked, 6 across.
  EXPECT_EQ(f.attention, 16 * (4 + 6 + 6));
  EXPECT_EQ(f.total(), f.linear + f.attention);
}

TEST(Flops, KnowWidthsOfTheirOwnForKeysAndValues) {
  const ModelConfig c{.encoder_layers = 1,
                      .decoder_layers = 1,
                      .d_model = 4,
                      .heads = 3,
                      .head_dim = 2,
                      .value_dim = 1,
                      .d_ff = 8};
  // k = 6, v = 3: query and key cost 48 a row, value and output 24.
  const Flops f = forward_flops(c, 5, 1, 1);
  EXPECT_EQ(f.linear, (144 + 128) + (144 + 128) + (48 + 24) + (48 + 24) + 40);
  EXPECT_EQ(f.attention, 3 * (12 + 6));
}

TEST(Flops, FollowTheHeadsOfEveryLayer) {
  const ModelConfig c{.encoder_layers = 2,
                      .decoder_layers = 1,
                      .d_model = 4,
                      .heads = HeadCounts::Lists{{{2, 0}, {1}, {3}}},
                      .head_dim = 2,
                      .value_dim = {},
                      .d_ff = 8};
  // A head costs 4·2·2 = 16 a row for each of query, key, value and output; a feed-forward layer 128, the output 40.
  const Flops f = forward_flops(c, 5, 2, 3);
  EXPECT_EQ(f.linear, 2 * (2 * 64 + 2 * 128) + 3 * (64 + 3 * 32 + 128) + 2 * 3 * 32 + 3 * 40);
  EXPECT_EQ(f.attention, 8 * (2 * 4 + 1 * 6 + 3 * 6));
}

TEST(Flops, OfTrainingAreThreeTimesThoseOfTheForwardPass) {
  const ModelConfig c;
  EXPECT_EQ(training_flops(c, 1000, 7, 9).total(), 3 * forward_flops(c, 1000, 7, 9).total());
}

TEST(Flops, OfAKnownModelPerTargetToken) {
  const ModelConfig tiny{.encoder_layers = 4,
                         .decoder_layers = 4,
                         .d_model = 128,
                         .heads = 4,
                         .head_dim = {},
                         .value_dim = {},
                         .d_ff = 256};
  EXPECT_NEAR(training_flops(tiny, 10000, 1, 1).linear, 15.5e6, 0.05e6);
}

}  // namespace
}  // namespace polyhead::nn
