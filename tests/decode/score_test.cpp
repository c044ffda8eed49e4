#include "polyhead/decode/score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "toy_model.h"

namespace polyhead::decode {
namespace {

std::vector<TokenPair> pairs_of(const Sentences& sources, const Sentences& targets) {
  std::vector<TokenPair> pairs;
  for (std::size_t i = 0; i < sources.size(); ++i) pairs.push_back({sources[i], targets[i]});
  return pairs;
}

TEST(Score, SumsWhatTheModelGivesEachToken) {
  const nn::Transformer model = toy_model(15, DType::f64);
  const Sentences sources = random_sentences(5, 15, 6, 1), targets = random_sentences(5, 15, 6, 2);
  const std::vector<Score> scores = score(model, pairs_of(sources, targets), 1);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::vector<std::int32_t> prefix{bos_id};
    double sum = 0;
    ASSERT_EQ(scores[i].tokens.size(), targets[i].size());
    ASSERT_EQ(scores[i].predictions.size(), targets[i].size());
    for (std::size_t t = 0; t < targets[i].size(); ++t) {
      const std::vector<double> next = next_log_probabilities(model, sources[i], prefix);
      const double expected = next[static_cast<std::size_t>(targets[i][t])];
      EXPECT_NEAR(scores[i].tokens[t], expected, 1e-9);
      EXPECT_EQ(scores[i].predictions[t], std::max_element(next.begin(), next.end()) - next.begin());
      sum += expected;
      prefix.push_back(targets[i][t]);
    }
    EXPECT_NEAR(scores[i].log_probability, sum, 1e-9);
  }
}

TEST(Score, ThreadsAndOrderChangeNothing) {
  const nn::Transformer model = toy_model(50);
  const Sentences sources = random_sentences(300, 50, 20, 1), targets = random_sentences(300, 50, 20, 2);
  std::vector<TokenPair> pairs = pairs_of(sources, targets);
  const std::vector<Score> expected = score(model, pairs, 1);
  std::reverse(pairs.begin(), pairs.end());
  const std::vector<Score> reversed = score(model, pairs, 3);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    EXPECT_EQ(reversed[pairs.size() - 1 - i].tokens, expected[i].tokens);
  EXPECT_EQ(score(model, std::vector{pairs[7]}, 1)[0].tokens, reversed[7].tokens);
}

TEST(Score, AnEmptySourceHasOneTranslationOnly) {
  const nn::Transformer model = toy_model(20);
  const Sentences sources{{eos_id}, {eos_id}, {5, eos_id}}, targets{{eos_id}, {6, eos_id}, {eos_id}};
  std::int64_t done = 0;
  const std::vector<Score> scores =
      score(model, pairs_of(sources, targets), 1, [&](std::int64_t sentences) { done += sentences; });
  EXPECT_EQ(scores[0].log_probability, 0);
  EXPECT_EQ(scores[0].tokens, std::vector<double>{0});
  EXPECT_EQ(scores[0].predictions, std::vector<std::int32_t>{eos_id});
  EXPECT_LT(scores[1].log_probability, 0);
  EXPECT_LT(scores[2].log_probability, 0);
  EXPECT_EQ(done, 3);
}

TEST(Score, OfAHypothesisCutAtTheLimitIsItsOwn) {
  const nn::Transformer model = toy_model(20, DType::f64);
  DecodingConfig config;
  config.max_length_ratio = 0;
  config.max_length_extra = 2;
  const Sentences sources = random_sentences(40, 20, 6);
  int cut = 0;
  for (const auto& source : sources) {
    const Hypothesis h = translate(model, std::vector<TokenIds>{source}, config, 1)[0][0];
    cut += !h.finished;
    EXPECT_NEAR(score(model, std::vector<TokenPair>{{source, h.ids}}, 1)[0].log_probability,
                h.log_probability, 1e-9);
  }
  EXPECT_GT(cut, 0);
}

TEST(Score, NamesAllSentencesOfWrongLength) {
  const nn::Transformer model = toy_model(20);
  const std::vector<std::int32_t> longer(41, 5), fits(40, 5);
  EXPECT_EQ(message_of<DataError>([&] {
              score(model, pairs_of({longer, fits, fits}, {fits, fits, longer}), 1);
            }),
            "expected 1 to 40 tokens (model.max_length), but source 1 has 41, target 3 has 41");
  const Sentences many(13, longer);
  EXPECT_TRUE(message_of<DataError>([&] {
                score(model, pairs_of(many, many), 1);
              }).ends_with("target 10 has 41, and 6 more"));
}

TEST(Score, NamesWhatIsWrong) {
  nn::Transformer model = toy_model(20);
  const Sentences sources{{5, eos_id}, {5, eos_id}};
  EXPECT_EQ(message_of<DataError>([&] {
              score(model, pairs_of(sources, {{4, eos_id}, {}}), 1);
            }),
            "expected 1 to 40 tokens (model.max_length), but target 2 has 0");
  model.parameters().value(model.parameters().at("output/bias")).as<float>()[9] =
      std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of<NumbersError>([&] { score(model, pairs_of(sources, sources), 1); }),
            "pair 1: its log-probability is not finite");
}

}  // namespace
}  // namespace polyhead::decode
