#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "polyhead/decode/translate.h"
#include "toy_model.h"

namespace polyhead::decode {
namespace {

using Results = std::vector<std::vector<Hypothesis>>;

DecodingConfig sampling(std::uint64_t seed = 1) {
  DecodingConfig config;
  config.method = Method::sampling;
  config.seed = seed;
  config.max_length_ratio = 1;
  config.max_length_extra = 6;
  return config;
}

TEST(Sampling, SeedsDecide) {
  const nn::Transformer model = toy_model(30, DType::f32, 1);
  const Sentences sources = random_sentences(10, 30, 8);
  const Results one = translate(model, views(sources), sampling(1), 1);
  EXPECT_EQ(translate(model, views(sources), sampling(1), 1), one);
  EXPECT_NE(translate(model, views(sources), sampling(2), 1), one);
}

TEST(Sampling, EqualLinesGetEqualSamplesAndDrawsOfALineDiffer) {
  const nn::Transformer model = toy_model(30, DType::f32, 1);
  const Sentences sources{{7, 8, 9, eos_id}, {4, eos_id}, {7, 8, 9, eos_id}};
  DecodingConfig config = sampling();
  config.nbest = 5;
  const Results results = translate(model, views(sources), config, 1);
  EXPECT_EQ(results[0], results[2]);
  ASSERT_EQ(results[0].size(), 5u);
  EXPECT_TRUE(std::is_sorted(results[0].begin(), results[0].end(),
                             [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; }));
  EXPECT_NE(results[0].front().ids, results[0].back().ids);
}

/// The same translations, with the same probabilities but for rounding.
void expect_same(const Results& results, const Results& expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].size(), 1U);
    EXPECT_EQ(results[i][0].ids, expected[i][0].ids);
    EXPECT_EQ(results[i][0].finished, expected[i][0].finished);
    EXPECT_NEAR(results[i][0].log_probability, expected[i][0].log_probability, 1e-5);
    EXPECT_NEAR(results[i][0].score, expected[i][0].score, 1e-5);
  }
}

TEST(Sampling, ColdOrTopOneOrTinyNucleusIsGreedy) {
  const nn::Transformer model = toy_model(30);
  const Sentences sources = random_sentences(20, 30, 8);
  DecodingConfig greedy = sampling(), cold = sampling(), one = sampling(), nucleus = sampling();
  greedy.method = Method::beam;
  greedy.beam_size = 1;
  cold.temperature = 1e-5;
  one.top_k = 1;
  nucleus.top_p = 1e-6;
  const Results expected = translate(model, views(sources), greedy, 1);
  expect_same(translate(model, views(sources), cold, 1), expected);
  expect_same(translate(model, views(sources), one, 1), expected);
  expect_same(translate(model, views(sources), nucleus, 1), expected);
}

/// Probabilities of the first id after temperature, as `config` cuts them.
std::vector<double> expected_distribution(const nn::Transformer& model, TokenIds source,
                                          const DecodingConfig& config) {
  std::vector<double> p = next_log_probabilities(model, source, {bos_id});
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] = i == static_cast<std::size_t>(bos_id) ? 0 : std::exp(p[i] / config.temperature);
    order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  if (config.top_k > 0) order.resize(static_cast<std::size_t>(config.top_k));
  double whole = 0, kept = 0;
  for (const std::size_t i : order) whole += p[i];
  std::vector<double> result(p.size(), 0.0);
  for (const std::size_t i : order) {
    if (kept >= config.top_p * whole) break;
    kept += result[i] = p[i];
  }
  for (double& x : result) x /= kept;
  return result;
}

TEST(Sampling, FollowsTheDistributionThatTemperatureTopKAndTopPLeave) {
  const nn::Transformer model = toy_model(200, DType::f64, 1);
  const Sentences sources{{7, 8, 9, eos_id}};
  constexpr int draws = 1000, seeds = 8;
  for (const auto& [temperature, top_k, top_p] : {std::tuple{1.0, 0, 1.0},
                                                  {0.5, 0, 1.0},
                                                  {1.0, 8, 1.0},
                                                  {1.0, 0, 0.6},
                                                  {1.5, 20, 0.5},
                                                  {1.0, 0, 0.98}}) {
    std::map<std::int32_t, int> counts;
    DecodingConfig config = sampling();
    config.temperature = temperature;
    config.top_k = top_k;
    config.top_p = top_p;
    config.nbest = draws;
    config.max_length_ratio = 0;
    config.max_length_extra = 1;
    for (config.seed = 1; config.seed <= seeds; ++config.seed) {
      const Results results = translate(model, views(sources), config, 1);
      for (const Hypothesis& h : results[0]) ++counts[h.ids.front()];
    }
    const std::vector<double> expected = expected_distribution(model, sources[0], config);
    for (std::size_t id = 0; id < expected.size(); ++id) {
      const double n = draws * seeds, mean = n * expected[id];
      EXPECT_NEAR(counts[static_cast<std::int32_t>(id)], mean, mean > 0 ? 5 * std::sqrt(mean) + 5 : 0)
          << id << ' ' << top_p;
    }
  }
}

}  // namespace
}  // namespace polyhead::decode
