#include "polyhead/heads/weight_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models.h"
#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Kind = nn::AttentionKind;
using Ids = std::vector<std::int32_t>;

const Ids source{5, 6, decode::eos_id}, target{7, decode::eos_id};
const std::vector<decode::TokenPair> pairs{{source, target}};

/// Word 6 separates and is the rarest.
TokenKnowledge knowledge() {
  TokenKnowledge result{pairs, std::vector<bool>(8), std::vector<bool>(8), std::vector<std::int64_t>(8)};
  result.source_separators[6] = result.source_separators[decode::eos_id] = true;
  result.target_separators[decode::eos_id] = true;
  result.source_counts[5] = 10;
  result.source_counts[6] = 3;
  return result;
}

WeightFigures figures_of(const Head& head, const AttentionMap& map) {
  const std::vector<Head> heads{head};
  const TokenKnowledge tokens = knowledge();
  WeightStatistics statistics(heads, tokens);
  statistics.add(0, std::span(&map, 1));
  return statistics.figures(0);
}

TEST(WeightFigures, OfAKnownMatrix) {
  const WeightFigures f =
      figures_of({{Kind::encoder, 0}, 0}, {3, 3, {0.5, 0.25, 0.25, 0, 1, 0, 1. / 3, 1. / 3, 1. / 3}});
  const double ln2 = std::log(2), ln3 = std::log(3);
  EXPECT_EQ(f.positions, 3);
  EXPECT_NEAR(f.entropy, (1.5 * ln2 + ln3) / 3, 1e-15);
  EXPECT_NEAR(f.relative_entropy, (1.5 * ln2 / ln3 + 1) / 3, 1e-15);
  EXPECT_NEAR(f.confidence, (0.5 + 1 + 1. / 3) / 3, 1e-15);
  EXPECT_THAT(f.offsets, ElementsAre(Pair(-2, 1), Pair(0, 2)));
  EXPECT_EQ(f.offset, 0);
  EXPECT_NEAR(f.offset_share, 2. / 3, 1e-15);
  EXPECT_FALSE(f.positional());
  EXPECT_NEAR(f.rare_word, 1. / 3, 1e-15);
  EXPECT_NEAR(f.rare_word_baseline, 0.5, 1e-15);
  EXPECT_NEAR(f.separator_mass, (0.5 + 1 + 2. / 3) / 3, 1e-15);
  // Of the first row ln 2, 0, 0 apart from a constant; of the second twice the smallest float.
  const double smallest = std::log(double{std::numeric_limits<float>::min()});
  EXPECT_NEAR(f.logit_deviation, std::sqrt((ln2 * ln2 + smallest * smallest) * 2 / 9 / 3), 1e-12);
  EXPECT_NEAR(f.saturation, 1. / 3, 1e-15);
}

TEST(WeightFigures, OfTheDecoderLookAtWhatIsVisible) {
  const WeightFigures f = figures_of({{Kind::decoder, 0}, 0}, {2, 2, {1, 0, 0.3, 0.7}});
  EXPECT_EQ(f.positions, 1);
  EXPECT_NEAR(f.entropy, -0.3 * std::log(0.3) - 0.7 * std::log(0.7), 1e-15);
  EXPECT_NEAR(f.relative_entropy, f.entropy / std::log(2), 1e-15);
  EXPECT_NEAR(f.confidence, 0.85, 1e-15);
  EXPECT_EQ(f.offset, 0);
  EXPECT_TRUE(f.positional());
  EXPECT_NEAR(f.separator_mass, (1 + 0.3) / 2, 1e-15);  // bos
  EXPECT_TRUE(std::isnan(f.rare_word));
  EXPECT_EQ(f.saturation, 0);
}

TEST(WeightFigures, ArePositionalFrom90Percent) {
  std::vector<double> previous(9 * 9);
  for (std::size_t q = 0; q < 9; ++q) previous[q * 9 + (q == 0 ? 4 : q - 1)] = 1;
  const Ids words(8, 5);
  Ids ids = words;
  ids.push_back(decode::eos_id);
  const std::vector<decode::TokenPair> long_pairs{{ids, target}};
  const std::vector<Head> heads{{{Kind::encoder, 0}, 0}};
  TokenKnowledge tokens = knowledge();
  tokens.pairs = long_pairs;
  WeightStatistics statistics(heads, tokens);
  const AttentionMap map(9, 9, previous);
  statistics.add(0, std::span(&map, 1));
  EXPECT_EQ(statistics.figures(0).offset, -1);
  EXPECT_NEAR(statistics.figures(0).offset_share, 8. / 9, 1e-15);
  EXPECT_FALSE(statistics.figures(0).positional());
  EXPECT_EQ(statistics.figures(0).saturation, 1);
}

/// H₂(¾, ¼) − ½ = 0.311278 bits; of equal rows 0, of disjoint rows 1.
TEST(WeightFigures, JensenShannonDistanceOfKnownRows) {
  const std::vector<Head> heads{{{Kind::cross, 1}, 0}, {{Kind::cross, 1}, 1}, {{Kind::cross, 1}, 2}};
  const TokenKnowledge tokens = knowledge();
  WeightStatistics statistics(heads, tokens);
  const std::vector<AttentionMap> maps{
      {2, 3, {1, 0, 0, 1, 0, 0}}, {2, 3, {0.5, 0.5, 0, 1, 0, 0}}, {2, 3, {0, 0, 1, 0, 0, 1}}};
  statistics.add(0, maps);
  EXPECT_NEAR(statistics.jensen_shannon(0, 1), std::sqrt(0.311278124459133) / 2, 1e-12);
  EXPECT_EQ(statistics.jensen_shannon(1, 0), statistics.jensen_shannon(0, 1));
  EXPECT_NEAR(statistics.jensen_shannon(0, 2), 1, 1e-15);
  EXPECT_EQ(statistics.jensen_shannon(2, 2), 0);
  EXPECT_TRUE(statistics.rollouts().empty());
}

/// R₁ = (A₁ + I)/2, R₂ = (A₂ + I)/2·R₁; the second layer's A is the mean of its two heads.
TEST(Rollout, MultipliesMeansOfHeadsWithTheResidual) {
  const AttentionMap first(2, 2, {1, 0, 0.5, 0.5}), a(2, 2, {0, 1, 1, 0}), b(2, 2, {1, 0, 0, 1});
  const auto matrices =
      rollout(std::vector<std::vector<const AttentionMap*>>{{&first}, {&a}, {}, {&a, &b}}, 2);
  ASSERT_EQ(matrices.size(), 4u);
  EXPECT_THAT(matrices[0], ElementsAre(1, 0, 0.25, 0.75));
  EXPECT_THAT(matrices[1], ElementsAre(0.625, 0.375, 0.625, 0.375));
  EXPECT_EQ(matrices[2], matrices[1]);  // no heads, no change
  EXPECT_THAT(matrices[3], ElementsAre(0.625, 0.375, 0.625, 0.375));

  const std::vector<Head> heads{{{Kind::encoder, 0}, 0}};
  const TokenKnowledge tokens = knowledge();
  WeightStatistics statistics(heads, tokens);
  const AttentionMap uniform(3, 3, std::vector<double>(9, 1. / 3));
  statistics.add(0, std::span(&uniform, 1));
  const std::vector<RolloutFigures> figures = statistics.rollouts();
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_NEAR(figures[0].self, 2. / 3, 1e-15);
  EXPECT_NEAR(figures[0].relative_entropy,
              -(2. / 3 * std::log(2. / 3) + 2 * (1. / 6) * std::log(1. / 6)) / std::log(3), 1e-12);
}

TEST(WeightStatistics, MergeToTheSame) {
  const std::vector<Head> heads{{{Kind::encoder, 0}, 0}, {{Kind::encoder, 0}, 1}};
  const TokenKnowledge tokens = knowledge();
  WeightStatistics whole(heads, tokens), first = whole, second = whole;
  const std::vector<AttentionMap> some{{3, 3, {0.5, 0.25, 0.25, 0, 1, 0, 0.25, 0.25, 0.5}},
                                       {3, 3, {1, 0, 0, 0, 1, 0, 0, 0, 1}}};
  const std::vector<AttentionMap> others{some[1], some[0]};
  whole.add(0, some);
  whole.add(0, others);
  first.add(0, some);
  second.add(0, others);
  first.merge(second);
  for (const std::size_t h : {0u, 1u}) {
    EXPECT_DOUBLE_EQ(first.figures(h).entropy, whole.figures(h).entropy);
    EXPECT_EQ(first.figures(h).offsets, whole.figures(h).offsets);
    EXPECT_DOUBLE_EQ(first.figures(h).rare_word, whole.figures(h).rare_word);
    EXPECT_DOUBLE_EQ(first.figures(h).logit_deviation, whole.figures(h).logit_deviation);
  }
  EXPECT_DOUBLE_EQ(first.jensen_shannon(0, 1), whole.jensen_shannon(0, 1));
  EXPECT_DOUBLE_EQ(first.rollouts()[0].self, whole.rollouts()[0].self);
}

TEST(TokenKnowledge, KnowsSeparatorsAndHowOftenWordsAre) {
  text::TokenizerConfig tokenizer;
  tokenizer.kind = "word";
  const text::TextPipeline pipeline =
      text::TextPipeline::learn(tokenizer, false, {"a b . ... a-b"}, {"x , y"});
  const Ids ids = pipeline.encode_source("a . a"), other = pipeline.encode_target("x");
  const std::vector<decode::TokenPair> known{{ids, other}};
  const TokenKnowledge tokens = token_knowledge(known, pipeline);
  const auto separates = [&](std::string_view piece) {
    return tokens.source_separators[static_cast<std::size_t>(pipeline.source().vocabulary().id(piece))];
  };
  EXPECT_TRUE(separates(".") && separates("..."));
  EXPECT_FALSE(separates("a") || separates("a-b"));
  EXPECT_TRUE(tokens.source_separators[decode::bos_id] && tokens.target_separators[decode::eos_id]);
  EXPECT_FALSE(tokens.source_separators[0]);
  EXPECT_EQ(tokens.source_counts[static_cast<std::size_t>(ids[0])], 2);
}

}  // namespace
}  // namespace polyhead::heads
