#include "polyhead/train/update.h"

#include <gtest/gtest.h>

#include <numeric>

#include "polyhead/kernels/bf16.h"
#include "support/check_op.h"
#include "tiny_task.h"

namespace polyhead::train {
namespace {

using testing::distance;
using testing::norm;
using testing::values;

std::vector<std::int32_t> first_pairs(int count) {
  std::vector<std::int32_t> pairs(static_cast<std::size_t>(count));
  std::iota(pairs.begin(), pairs.end(), 0);
  return pairs;
}

struct Step {
  std::vector<double> gradients;
  ShardTotals totals;
  friend bool operator==(const Step&, const Step&) = default;
};

Step run_step(const nn::Transformer& model, const data::ParallelCorpus& corpus,
              const std::vector<std::int32_t>& pairs, int shards, int threads,
              Precision precision = Precision::f32) {
  std::vector<Worker> workers(static_cast<std::size_t>(threads));
  GradientStep step(model, shards, precision, workers);
  const TreeReduction& sum = step.run(corpus, pairs, 0.1, RngKey{5}.fold(1));
  return {values(sum.gradients()), sum.totals()};
}

TEST(GradientStep, GivesTheSameBitsOnEveryNumberOfThreads) {
  const data::ParallelCorpus corpus = tiny_corpus(60, 12);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const nn::Transformer model = tiny_model(dtype);
    for (const int shards : {1, 5, 8}) {
      const Step one = run_step(model, corpus, first_pairs(60), shards, 1);
      EXPECT_EQ(run_step(model, corpus, first_pairs(60), shards, 2), one);
      EXPECT_EQ(run_step(model, corpus, first_pairs(60), shards, 3), one);
      EXPECT_GT(one.totals.loss, 0);
      EXPECT_EQ(one.totals.tokens, static_cast<double>(corpus.target_tokens()));
    }
  }
}

TEST(GradientStep, MixedPrecisionFollowsF32WithTheSameBitsOnEveryNumberOfThreads) {
  if (!kernels::has_bf16()) GTEST_SKIP() << "this machine has no products of bf16";
  const data::ParallelCorpus corpus = tiny_corpus(60, 12);
  const nn::Transformer model = tiny_model(DType::f32);
  const Step single = run_step(model, corpus, first_pairs(60), 4, 1),
             mixed = run_step(model, corpus, first_pairs(60), 4, 1, Precision::bf16);
  EXPECT_EQ(run_step(model, corpus, first_pairs(60), 4, 2, Precision::bf16), mixed);
  EXPECT_NE(mixed.totals.loss, single.totals.loss);
  EXPECT_NEAR(mixed.totals.loss, single.totals.loss, 0.005 * single.totals.loss);
  EXPECT_LT(distance(mixed.gradients, single.gradients), 0.02 * norm(single.gradients));
}

TEST(GradientStep, EightLanesTwiceGiveTheBitsOfSixteen) {
  const data::ParallelCorpus corpus = tiny_corpus(60, 12);
  const nn::Transformer model = tiny_model(DType::f32);
  const std::vector<std::int32_t> pairs = first_pairs(60);
  std::vector<std::span<const std::int32_t>> shards(16);
  data::cut_shards(corpus, pairs, shards);
  const std::int64_t size = model.parameters().slab_size();
  Worker worker;
  std::vector<double> sum(static_cast<std::size_t>(size));
  ShardTotals totals;
  for (const std::size_t half : {0, 8}) {
    TreeReduction eight(8, size, DType::f32);
    eight.begin(8);
    for (std::size_t i = 0; i < 8; ++i) {
      const auto shard = shards[half + i];
      const auto first = static_cast<std::int32_t>(shard.data() - pairs.data());
      const auto index = static_cast<std::int64_t>(i);
      eight.complete(index,
                     worker.run(model, corpus, shard, first, 0.1, RngKey{5}.fold(1), eight.acquire(index)));
    }
    const std::vector<double> part = values(eight.gradients());
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = static_cast<double>(static_cast<float>(sum[i]) + static_cast<float>(part[i]));
    totals += eight.totals();
  }
  EXPECT_EQ((Step{sum, totals}), run_step(model, corpus, pairs, 16, 2));
}

TEST(GradientStep, HowAnUpdateIsCutChangesOnlyRounding) {
  const data::ParallelCorpus corpus = tiny_corpus(30, 12);
  const nn::Transformer model = tiny_model(DType::f64);
  const Step whole = run_step(model, corpus, first_pairs(30), 1, 1);
  for (const int shards : {2, 7, 40}) {
    const Step cut = run_step(model, corpus, first_pairs(30), shards, 1);
    EXPECT_NEAR(cut.totals.loss, whole.totals.loss, 1e-10);
    EXPECT_NEAR(cut.totals.negative_log_likelihood, whole.totals.negative_log_likelihood, 1e-10);
    EXPECT_EQ(cut.totals.tokens, whole.totals.tokens);
    EXPECT_EQ(cut.totals.correct, whole.totals.correct);
    for (std::size_t i = 0; i < whole.gradients.size(); ++i)
      ASSERT_NEAR(cut.gradients[i], whole.gradients[i], 1e-11) << shards << " shards, element " << i;
  }
}

TEST(GradientStep, RandomnessFollowsTheKeyOfTheUpdate) {
  const data::ParallelCorpus corpus = tiny_corpus(10, 12);
  const nn::Transformer model = tiny_model(DType::f32);
  const std::vector<std::int32_t> pairs = first_pairs(10);
  std::vector<Worker> workers(1);
  GradientStep step(model, 2, Precision::f32, workers);
  const auto loss = [&](std::uint64_t update) {
    return step.run(corpus, pairs, 0, RngKey{5}.fold(update)).totals().loss;
  };
  const double first = loss(1), second = loss(2);
  EXPECT_NE(first, second);
  EXPECT_EQ(loss(1), first);
}

TEST(EvaluateLoss, IsTheUnsmoothedLossOfEveryPairWithoutDropout) {
  const data::ParallelCorpus corpus = tiny_corpus(20, 12);
  const nn::Transformer model = tiny_model(DType::f64);
  std::vector<Worker> one(1), two(2);
  const ShardTotals totals = evaluate_loss(model, corpus, 40, one);
  EXPECT_EQ(evaluate_loss(model, corpus, 40, two), totals);
  EXPECT_NEAR(evaluate_loss(model, corpus, 1000, one).loss, totals.loss, 1e-10);
  EXPECT_NEAR(totals.loss, totals.negative_log_likelihood, 1e-10);
  EXPECT_EQ(totals.tokens, static_cast<double>(corpus.target_tokens()));
}

}  // namespace
}  // namespace polyhead::train
