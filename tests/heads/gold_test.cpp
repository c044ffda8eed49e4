#include "polyhead/heads/gold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace polyhead::heads {
namespace {

using ::testing::ElementsAre;

/// "the dog sees cats": the -> dog -> sees (root) <- cats; target "hunde sieht er": hunde -> sieht (root) <- er.
data::Pair sentence() {
  data::Pair pair;
  pair.source = {"the", "dog", "sees", "cats"};
  pair.target = {"hunde", "sieht", "er"};
  pair.source_tree = {{1, 2, -1, 2}, {"det", "nsubj", "root", "obj"}};
  pair.target_tree = {{1, -1, 1}, {"obj", "root", "nsubj"}};
  pair.alignment = {{3, 0, true}, {2, 1, true}, {0, 2, false}, {1, 2, true}};
  return pair;
}

TEST(GoldEdges, OfTheEncoderGoBothWaysAlongTheSourceTree) {
  EXPECT_THAT(gold_edges(Relation::head, sentence()),
              ElementsAre(Edge{0, 1, "det"}, Edge{1, 2, "nsubj"}, Edge{3, 2, "obj"}));
  EXPECT_THAT(gold_edges(Relation::dependents, sentence()),
              ElementsAre(Edge{1, 0, "det"}, Edge{2, 1, "nsubj"}, Edge{2, 3, "obj"}));
}

TEST(GoldEdges, OfTheDecoderGoToEarlierTokensAlone) {
  for (const Relation relation : {Relation::input_head, Relation::predicted_head})
    EXPECT_THAT(gold_edges(relation, sentence()), ElementsAre(Edge{2, 1, "nsubj"}));
  for (const Relation relation : {Relation::input_dependents, Relation::predicted_dependents})
    EXPECT_THAT(gold_edges(relation, sentence()), ElementsAre(Edge{1, 0, "obj"}));
}

TEST(GoldEdges, OfCrossAttentionAreAllLinks) {
  for (const Relation relation : {Relation::predicted_alignment, Relation::input_alignment})
    EXPECT_THAT(gold_edges(relation, sentence()),
                ElementsAre(Edge{0, 3, ""}, Edge{1, 2, ""}, Edge{2, 0, ""}, Edge{2, 1, ""}));
}

EdgeAgreement agreement(Relation relation, const AttentionMap& map) {
  EdgeAgreement result(relation);
  result.add(map, gold_edges(relation, sentence()));
  return result;
}

TEST(EdgeAgreement, IsTheMeanWeightOnGoldPartners) {
  // Columns: the dog sees cats </s>.
  const AttentionMap map(5, 5, {.1, .6, .1, .1, .1,  // the: .6 on dog
                                .2, .2, .3, .1, .2,  // dog: .3 on sees, .2 on the
                                .4, .3, .0, .2, .1,  // sees: .3 on dog and .2 on cats
                                .1, .5, .2, .1, .1,  // cats: .2 on sees
                                .2, .2, .2, .2, .2});
  const EdgeAgreement head = agreement(Relation::head, map);
  EXPECT_EQ(head.tokens(), 3);
  EXPECT_NEAR(head.mass(), (.6 + .3 + .2) / 3, 1e-15);
  const EdgeAgreement dependents = agreement(Relation::dependents, map);
  EXPECT_EQ(dependents.tokens(), 2);
  EXPECT_NEAR(dependents.mass(), (.2 + (.3 + .2)) / 2, 1e-15);
}

TEST(EdgeAgreement, CountsForEachLabelTheTokensWhoseLargestWeightIsOnAPartner) {
  const AttentionMap map(5, 5, {.1, .2, .1, .1, .5,  // the: the end token is left out, so dog
                                .2, .2, .3, .1, .2,  // dog: sees
                                .1, .5, .0, .3, .1,  // sees: dog
                                .1, .5, .2, .1, .1,  // cats: dog, not sees
                                .2, .2, .2, .2, .2});
  const EdgeAgreement head = agreement(Relation::head, map);
  EXPECT_EQ(head.labels().at("det").share(), 1);
  EXPECT_EQ(head.labels().at("nsubj").share(), 1);
  EXPECT_EQ(head.labels().at("obj").share(), 0);
  EXPECT_FALSE(head.labels().contains("root"));
  const EdgeAgreement dependents = agreement(Relation::dependents, map);
  EXPECT_EQ(dependents.labels().at("nsubj").share(), 1);
  EXPECT_EQ(dependents.labels().at("obj").share(), 0);
}

/// Rows and columns of the decoder: <s> hunde sieht er.
const AttentionMap& decoder_map() {
  static const AttentionMap map(4, 4,
                                {1., .0, .0, .0,    // predicts hunde
                                 .3, .7, .0, .0,    // input hunde, predicts sieht
                                 .5, .1, .4, .0,    // input sieht, predicts er
                                 .1, .2, .6, .1});  // input er
  return map;
}

TEST(EdgeAgreement, OfTheDecoderTakesTheRowThatReadsOrPredictsTheToken) {
  // er -> sieht, and sieht -> hunde.
  EXPECT_NEAR(agreement(Relation::input_head, decoder_map()).mass(), .6, 1e-15);
  EXPECT_NEAR(agreement(Relation::predicted_head, decoder_map()).mass(), .4, 1e-15);
  EXPECT_NEAR(agreement(Relation::input_dependents, decoder_map()).mass(), .1, 1e-15);
  EXPECT_NEAR(agreement(Relation::predicted_dependents, decoder_map()).mass(), .7, 1e-15);
  // The start token is no candidate: .5 on it in the row that predicts er.
  EXPECT_EQ(agreement(Relation::predicted_head, decoder_map()).labels().at("nsubj").share(), 1);
  EXPECT_EQ(agreement(Relation::input_dependents, decoder_map()).labels().at("obj").share(), 0);
}

/// Rows <s> hunde sieht er, columns the dog sees cats </s>.
const AttentionMap& cross_map() {
  static const AttentionMap map(4, 5, {.1, .1, .1, .6, .1,  // hunde: cats
                                       .1, .2, .1, .1, .5,  // sieht: the end token left out, dog
                                       .4, .3, .1, .1, .1,  // er: the
                                       .0, .0, .9, .1, .0});
  return map;
}

TEST(EdgeAgreement, OfCrossAttentionSumsOverAlignedTokens) {
  EXPECT_NEAR(agreement(Relation::predicted_alignment, cross_map()).mass(), (.6 + .1 + (.4 + .3)) / 3, 1e-15);
  EXPECT_NEAR(agreement(Relation::input_alignment, cross_map()).mass(), (.1 + .1 + 0.) / 3, 1e-15);
}

TEST(EdgeAgreement, OfTwoPartsIsThatOfAllSentences) {
  EdgeAgreement parts = agreement(Relation::input_head, decoder_map());
  parts.merge(agreement(Relation::input_head, AttentionMap(4, 4,
                                                           {1, 0, 0, 0,  //
                                                            1, 0, 0, 0,  //
                                                            1, 0, 0, 0,  //
                                                            0, 1, 0, 0})));
  EXPECT_EQ(parts.tokens(), 2);
  EXPECT_NEAR(parts.mass(), .3, 1e-15);
  EXPECT_EQ(parts.labels().at("nsubj").tokens, 2);
  EXPECT_EQ(parts.labels().at("nsubj").share(), .5);
}

TEST(OffsetAgreement, FindsTheOffsetThatHitsMost) {
  OffsetAgreement offsets;
  offsets.add(gold_edges(Relation::head, sentence()));  // +1, +1, −1
  EXPECT_EQ(offsets.mass().offset, 1);
  EXPECT_NEAR(offsets.mass().score, 2. / 3, 1e-15);
  EXPECT_EQ(offsets.share("obj").offset, -1);
  EXPECT_EQ(offsets.share("obj").score, 1);
  OffsetAgreement dependents;
  dependents.add(gold_edges(Relation::dependents, sentence()));  // dog: −1; sees: −1, +1
  EXPECT_EQ(dependents.mass().offset, -1);
  EXPECT_EQ(dependents.mass().score, 1);
}

TEST(OffsetAgreement, TakesTheNearerOfEqualOffsetsAndTheNegativeOneFirst) {
  OffsetAgreement offsets;
  offsets.add(std::vector<Edge>{{0, 3, ""}, {3, 5, ""}, {7, 5, ""}});
  EXPECT_EQ(offsets.mass().offset, -2);
  EXPECT_NEAR(offsets.mass().score, 1. / 3, 1e-15);
}

TEST(AlignmentErrorRate, IsThatOfOchAndNey) {
  // A: hunde-cats (sure), sieht-dog (wrong), er-the (possible). S: 3 links.
  AlignmentAgreement counts;
  const std::vector<int> sources = alignment_of(cross_map(), Relation::predicted_alignment);
  EXPECT_THAT(sources, ElementsAre(3, 1, 0));
  counts.add(sources, 4, sentence().alignment);
  EXPECT_EQ(counts.links, 3);
  EXPECT_EQ(counts.sure, 3);
  EXPECT_EQ(counts.sure_hits, 1);
  EXPECT_EQ(counts.possible_hits, 2);
  EXPECT_NEAR(counts.error_rate(), 1 - (1. + 2) / (3 + 3), 1e-15);
  EXPECT_THAT(alignment_of(cross_map(), Relation::input_alignment), ElementsAre(1, 0, 2));
}

TEST(AlignmentErrorRate, IsZeroForTheSureLinksAndOneForNoneOfThem) {
  AlignmentAgreement right, wrong;
  right.add(std::vector<int>{3, 2, 1}, 4, sentence().alignment);
  EXPECT_EQ(right.error_rate(), 0);
  wrong.add(std::vector<int>{0, 0, 2}, 4, sentence().alignment);
  EXPECT_EQ(wrong.error_rate(), 1);
  right.merge(wrong);
  EXPECT_EQ(right.error_rate(), .5);
}

TEST(AlignmentErrorRate, OfTheBestFixedOffset) {
  // hunde-cats is +3, sieht-sees +1, er-the −2 and er-dog −1. +3 gives A = {hunde-cats} alone; +1 the links 0-1, 1-2
  // and 2-3, of which one is sure: 1 − 2/6. +3: 1 − 2/(1 + 3).
  const data::Pair pair = sentence();
  const OffsetScore best = best_alignment_offset({&pair, 1});
  EXPECT_EQ(best.offset, 3);
  EXPECT_NEAR(best.score, .5, 1e-15);
}

TEST(AttentionMap, RefusesWeightsThatDoNotFit) { EXPECT_THROW(AttentionMap(2, 2, {1, 0, 0}), Error); }

}  // namespace
}  // namespace polyhead::heads
