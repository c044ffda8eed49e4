#include "polyhead/nn/config.h"

#include <gtest/gtest.h>

#include "polyhead/config/yaml.h"
#include "support/check_op.h"

namespace polyhead::nn {
namespace {

ModelConfig parse(const std::string& text) { return config::parse<ModelConfig>(text, "model.yaml"); }
std::string error(const std::string& text) {
  return testing::error_of([&] { parse(text); });
}

TEST(ModelConfig, EverySettingIsRead) {
  const ModelConfig c = parse(R"(
encoder_layers: 3
decoder_layers: 2
d_model: 12
heads: 5
head_dim: 7
value_dim: 3
d_ff: 20
activation: swish
norm: pre
dropout: 0.3
attention_dropout: 0.2
activation_dropout: 0.1
positions: learned
max_length: 99
tie_embeddings: all
bias: false
)");
  EXPECT_EQ(c.encoder_layers, 3);
  EXPECT_EQ(c.decoder_layers, 2);
  EXPECT_EQ(c.heads, 5);
  EXPECT_EQ(c.key_width(), 7);
  EXPECT_EQ(c.value_width(), 3);
  EXPECT_EQ(c.d_ff, 20);
  EXPECT_EQ(c.activation, ops::Activation::swish);
  EXPECT_EQ(c.norm, Norm::pre);
  EXPECT_EQ(c.dropout, 0.3);
  EXPECT_EQ(c.attention_dropout, 0.2);
  EXPECT_EQ(c.activation_dropout, 0.1);
  EXPECT_EQ(c.positions, Positions::learned);
  EXPECT_EQ(c.max_length, 99);
  EXPECT_EQ(c.tie_embeddings, TieEmbeddings::all);
  EXPECT_FALSE(c.bias);
  EXPECT_EQ(parse(config::dump(c)), c);
}

TEST(ModelConfig, HeadsPartitionTheFeaturesByDefault) {
  const ModelConfig c = parse("{d_model: 96, heads: 6}");
  EXPECT_EQ(c.key_width(), 16);
  EXPECT_EQ(c.value_width(), 16);
  EXPECT_EQ(parse("{d_model: 96, heads: 6, head_dim: 10}").value_width(), 10);
  EXPECT_EQ(parse("{}"), ModelConfig{});
}

TEST(ModelConfig, ErrorsSayWhatFits) {
  EXPECT_EQ(
      error("d_model: 128\nheads: 6"),
      "model.yaml:2: heads: 6 does not divide d_model 128, expected a divisor, or head_dim to be given");
  EXPECT_EQ(parse("{d_model: 128, heads: 6, head_dim: 16}").heads, 6);
  EXPECT_EQ(error("{d_model: 9, heads: 3}"),
            "model.yaml:1: d_model: 9 is odd, expected an even number for sinusoidal positions");
  EXPECT_EQ(parse("{d_model: 9, heads: 3, positions: none}").d_model, 9);
}

constexpr const char* lists =
    "{encoder_layers: 2, decoder_layers: 1, d_model: 12, head_dim: 4, heads: {encoder: [2, 0], decoder: [1], "
    "cross: [5]}}";

TEST(ModelConfig, HeadsMayDifferByKindAndLayer) {
  const ModelConfig c = parse(lists);
  EXPECT_EQ(c.heads.at({AttentionKind::encoder, 0}), 2);
  EXPECT_EQ(c.heads.at({AttentionKind::encoder, 1}), 0);
  EXPECT_EQ(c.heads.at({AttentionKind::decoder, 0}), 1);
  EXPECT_EQ(c.heads.at({AttentionKind::cross, 0}), 5);
  EXPECT_EQ(c.total_heads(AttentionKind::encoder), 2);
  EXPECT_EQ(c.key_width(), 4);
  EXPECT_EQ(parse(config::dump(c)), c);
  EXPECT_EQ(parse("{heads: 4}").heads.at({AttentionKind::cross, 3}), 4);
  EXPECT_EQ(testing::error_of([&] { static_cast<void>(int{c.heads}); }),
            "model.heads: {encoder: [2, 0], decoder: [1], cross: [5]}, expected an integer here");
}

TEST(ModelConfig, ListsOfHeadsMustFitTheLayers) {
  const std::string layers = "encoder_layers: 1\ndecoder_layers: 1\nhead_dim: 4\nheads: ";
  const std::string expected = "expected an integer, or {encoder: [...], decoder: [...], cross: [...]}";
  EXPECT_EQ(error(layers + "{encoder: [1], decoder: [1]}"), "model.yaml:4: heads: a mapping, " + expected);
  EXPECT_EQ(error(layers + "{encoder: [1], decoder: [1], crss: [1]}"),
            "model.yaml:4: heads: a mapping, " + expected);
  EXPECT_EQ(error(layers + "[4, 4]"), "model.yaml:4: heads: a list, " + expected);
  EXPECT_EQ(error(layers + "{encoder: [1], decoder: [x], cross: [1]}"),
            "model.yaml:4: heads.decoder[0]: \"x\", expected an integer");
  EXPECT_EQ(error(layers + "{encoder: [1, 1], decoder: [-1], cross: [2000]}"),
            "model.yaml:4: heads: encoder has 2 numbers, expected one for each of 1 layers\n"
            "model.yaml:4: heads: decoder has a layer of -1 heads, expected between 0 and 1024\n"
            "model.yaml:4: heads: cross has a layer of 2000 heads, expected between 0 and 1024");
  EXPECT_EQ(error("{encoder_layers: 1, decoder_layers: 1, heads: {encoder: [1], decoder: [1], cross: [1]}}"),
            "model.yaml: head_dim: null, expected a number of features where layers have numbers of heads "
            "of their own");
  EXPECT_EQ(error("heads: 0"), "model.yaml:1: heads: 0, expected between 1 and 1024");
}

}  // namespace
}  // namespace polyhead::nn
