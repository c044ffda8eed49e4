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
    for (std::size_t t = 0; t < targets[i].size(); ++t) {
      const double expected =
          next_log_probabilities(model, sources[i], prefix)[static_cast<std::size_t>(targets[i][t])];
      EXPECT_NEAR(scores[i].tokens[t], expected, 1e-9);
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

template <class E, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

TEST(Score, NamesWhatIsWrong) {
  nn::Transformer model = toy_model(20);
  const Sentences sources{{5, eos_id}, {5, eos_id}};
  EXPECT_EQ(message_of<DataError>([&] {
              score(model, pairs_of(sources, {{4, eos_id}, {}}), 1);
            }),
            "target sentence 2 has 0 tokens, expected 1 to 40 (model.max_length)");
  model.parameters().value(model.parameters().at("output/bias")).as<float>()[9] =
      std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of<NumbersError>([&] { score(model, pairs_of(sources, sources), 1); }),
            "pair 1: its log-probability is not finite");
}

}  // namespace
}  // namespace polyhead::decode
