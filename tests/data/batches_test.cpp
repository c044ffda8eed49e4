#include "polyhead/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data_files.h"
#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"

namespace polyhead::data {
namespace {

using ::testing::ElementsAre;

ParallelCorpus random_corpus(int size) {
  RandomStream random(RngKey{7});
  std::vector<std::pair<int, int>> lengths;
  for (int i = 0; i < size; ++i) {
    lengths.emplace_back(static_cast<int>(random.below(20)), static_cast<int>(random.below(30)));
  }
  return corpus_of_lengths(lengths);
}

std::vector<std::vector<std::int32_t>> list(const BatchPlan& plan) {
  std::vector<std::vector<std::int32_t>> batches;
  for (std::int64_t i = 0; i < plan.size(); ++i) batches.emplace_back(plan[i].begin(), plan[i].end());
  return batches;
}

void expect_every_pair_once_within(const BatchPlan& plan, const ParallelCorpus& corpus,
                                   std::int64_t batch_tokens) {
  std::vector<int> seen(static_cast<std::size_t>(corpus.size()), 0);
  for (std::int64_t i = 0; i < plan.size(); ++i) {
    ASSERT_FALSE(plan[i].empty());
    for (const std::int32_t pair : plan[i]) ++seen[static_cast<std::size_t>(pair)];
    if (plan[i].size() > 1) {
      EXPECT_LE(count_tokens(corpus, plan[i]).target, batch_tokens);
    }
  }
  EXPECT_THAT(seen, ::testing::Each(1));
}

TEST(BatchPlan, HasEveryPairOnceWithinTheLimit) {
  const auto corpus = random_corpus(20'000);
  for (const std::int64_t tokens : {1, 17, 30, 512, 1'000'000}) {
    expect_every_pair_once_within(BatchPlan::training(corpus, tokens, 1, 0), corpus, tokens);
    expect_every_pair_once_within(BatchPlan::validation(corpus, tokens), corpus, tokens);
  }
}

TEST(BatchPlan, FillsBatchesOfSimilarLength) {
  const auto corpus = random_corpus(20'000);
  const auto plan = BatchPlan::training(corpus, 512, 1, 0);
  EXPECT_LT(plan.size(), corpus.target_tokens() * 106 / (100 * 512) + 4) << "hardly any room is left unused";
  int uneven = 0;
  for (std::int64_t i = 0; i < plan.size(); ++i) {
    const auto [low, high] = std::minmax_element(plan[i].begin(), plan[i].end(), [&](auto a, auto b) {
      return corpus.target_length(a) < corpus.target_length(b);
    });
    uneven += corpus.target_length(*high) - corpus.target_length(*low) > 1 && corpus.target_length(*low) > 2
                  ? 1
                  : 0;
  }
  EXPECT_EQ(uneven, 0);
}

TEST(BatchPlan, IsAFunctionOfSeedAndEpoch) {
  const auto corpus = random_corpus(1000);
  const auto plan = list(BatchPlan::training(corpus, 256, 1, 3));
  EXPECT_EQ(plan, list(BatchPlan::training(corpus, 256, 1, 3)));
  EXPECT_NE(plan, list(BatchPlan::training(corpus, 256, 1, 4)));
  EXPECT_NE(plan, list(BatchPlan::training(corpus, 256, 2, 3)));
}

TEST(BatchPlan, DoesNotRunThroughTheLengthsInOrder) {
  const auto corpus = random_corpus(5000);
  const auto plan = BatchPlan::training(corpus, 256, 1, 0);
  std::vector<std::int32_t> lengths;
  for (std::int64_t i = 0; i < plan.size(); ++i) lengths.push_back(corpus.target_length(plan[i].front()));
  EXPECT_FALSE(std::is_sorted(lengths.begin(), lengths.end()));
}

TEST(BatchPlan, ALongSentenceIsABatchOfItsOwn) {
  const auto corpus = corpus_of_lengths({{2, 2}, {3, 50}, {2, 2}, {1, 60}});
  const auto plan = list(BatchPlan::validation(corpus, 10));
  EXPECT_THAT(plan, ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
  EXPECT_THAT(
      list(BatchPlan::training(corpus, 10, 1, 0)),
      ::testing::UnorderedElementsAre(::testing::UnorderedElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
}

TEST(BatchPlan, FindsTheLargest) {
  const auto corpus = corpus_of_lengths({{2, 5}, {9, 5}, {3, 6}});
  EXPECT_THAT(BatchPlan::validation(corpus, 6).largest(corpus), ElementsAre(1));
}

TEST(BatchPlan, ValidationIsInOrderOfLength) {
  const auto corpus = corpus_of_lengths({{1, 5}, {4, 2}, {2, 2}, {1, 1}, {2, 2}});
  EXPECT_THAT(list(BatchPlan::validation(corpus, 6)),
              ElementsAre(ElementsAre(3, 2), ElementsAre(4, 1), ElementsAre(0)));
}

TEST(BatchPlan, NeedsRoomForATarget) {
  const auto corpus = corpus_of_lengths({{1, 1}});
  EXPECT_EQ(message_of<Error>([&] { BatchPlan::training(corpus, 0, 1, 0); }),
            "training.batch_tokens: 0, expected at least 1");
}

TEST(Pack, LaysSentencesEndToEnd) {
  const auto corpus = corpus_of_lengths({{2, 1}, {0, 2}, {1, 0}});
  std::vector<std::int32_t> source(9, -1), input(9, -1), output(9, -1);
  std::vector<Segment> source_segments(4), target_segments(4);
  const std::vector<std::int32_t> pairs = {0, 2, 1};
  const PackedBatch batch = pack(corpus, pairs, {source, input, output, source_segments, target_segments});
  const std::int32_t w0 = corpus.source(0)[0], w1 = corpus.source(0)[1];
  constexpr auto bos = text::bos_id, eos = text::eos_id;
  EXPECT_THAT(batch.source, ElementsAre(w0, w1, eos, w0, eos, eos));
  EXPECT_THAT(batch.target_input, ElementsAre(bos, w0, bos, bos, w0, w1));
  EXPECT_THAT(batch.target_output, ElementsAre(w0, eos, eos, w0, w1, eos));
  EXPECT_THAT(batch.source_segments, ElementsAre(Segment{0, 3}, Segment{3, 2}, Segment{5, 1}));
  EXPECT_THAT(batch.target_segments, ElementsAre(Segment{0, 2}, Segment{2, 1}, Segment{3, 3}));
  EXPECT_EQ(source[6], -1) << "the rest of the buffer is untouched";
  EXPECT_EQ(count_tokens(corpus, pairs), (TokenCount{6, 6}));
}

TEST(Pack, RefusesShortBuffers) {
  const auto corpus = corpus_of_lengths({{2, 1}, {3, 2}});
  std::vector<std::int32_t> source(6), input(5), output(5);
  std::vector<Segment> segments(2);
  const std::vector<std::int32_t> pairs = {0, 1};
  EXPECT_EQ(
      message_of<Error>([&] {
        pack(corpus, pairs, {source, input, output, segments, segments});
      }),
      "pack: 2 pairs of 7 source and 5 target tokens do not fit buffers for 2 pairs of 6 source and 5 target "
      "tokens");
}

TEST(CutShards, AreContiguousAndOfSimilarSize) {
  const auto corpus = random_corpus(400);
  const auto plan = BatchPlan::training(corpus, 2048, 1, 0);
  for (const std::size_t n : {1u, 2u, 8u, 16u}) {
    for (std::int64_t i = 0; i < plan.size(); ++i) {
      std::vector<std::span<const std::int32_t>> shards(n);
      cut_shards(corpus, plan[i], shards);
      std::vector<std::int32_t> joined;
      const std::int64_t total = count_tokens(corpus, plan[i]).both();
      std::int64_t longest = 0;
      for (const auto pair : plan[i])
        longest = std::max(longest, count_tokens(corpus, std::span(&pair, 1)).both());
      for (const auto& shard : shards) {
        joined.insert(joined.end(), shard.begin(), shard.end());
        const auto tokens = static_cast<double>(count_tokens(corpus, shard).both());
        const double fair = static_cast<double>(total) / static_cast<double>(n);
        EXPECT_NEAR(tokens, fair, static_cast<double>(longest));
      }
      EXPECT_TRUE(std::equal(joined.begin(), joined.end(), plan[i].begin(), plan[i].end()));
    }
  }
}

TEST(CutShards, CutsAtTheNearestEnd) {
  const auto corpus = corpus_of_lengths({{4, 4}, {4, 4}, {4, 4}, {9, 9}});
  const std::vector<std::int32_t> pairs = {0, 1, 2, 3};
  std::vector<std::span<const std::int32_t>> shards(2);
  cut_shards(corpus, pairs, shards);
  EXPECT_THAT(shards[0], ElementsAre(0, 1, 2))
      << "30 of 50 tokens are as near to 25 as 20 are: the later end";
  EXPECT_THAT(shards[1], ElementsAre(3));
}

TEST(CutShards, LeavesShardsEmptyWhenPairsAreFew) {
  const auto corpus = corpus_of_lengths({{4, 4}, {4, 4}});
  const std::vector<std::int32_t> pairs = {1, 0};
  std::vector<std::span<const std::int32_t>> shards(5);
  cut_shards(corpus, pairs, shards);
  std::size_t total = 0;
  for (const auto& shard : shards) total += shard.size();
  EXPECT_EQ(total, 2u);
  cut_shards(corpus, {}, shards);
  for (const auto& shard : shards) EXPECT_TRUE(shard.empty());
}

}  // namespace
}  // namespace polyhead::data
