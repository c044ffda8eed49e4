#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "polyhead/decode/score.h"
#include "polyhead/decode/translate.h"
#include "polyhead/text/vocabulary.h"
#include "toy_model.h"

namespace polyhead::decode {
namespace {

static_assert(bos_id == text::bos_id && eos_id == text::eos_id);

using Results = std::vector<std::vector<Hypothesis>>;

DecodingConfig beam(int size, int nbest = 1) {
  DecodingConfig config;
  config.beam_size = size;
  config.nbest = nbest;
  config.max_length_ratio = 1;
  config.max_length_extra = 6;
  return config;
}

TEST(Translate, BeamOfOneIsGreedySearchOverTheWholePrefix) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const nn::Transformer model = toy_model(12, dtype);
    const Sentences sources = random_sentences(20, 12, 9);
    const Results results = translate(model, views(sources), beam(1), 1);
    ASSERT_EQ(results.size(), sources.size());
    int finished = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto limit = static_cast<std::int32_t>(sources[i].size()) + 6;
      const Hypothesis expected = plain_greedy(model, sources[i], limit);
      ASSERT_EQ(results[i].size(), 1u);
      EXPECT_EQ(results[i][0].ids, expected.ids);
      EXPECT_EQ(results[i][0].finished, expected.finished);
      EXPECT_NEAR(results[i][0].log_probability, expected.log_probability, 1e-5);
      finished += expected.finished;
    }
    EXPECT_GT(finished, 0);
    EXPECT_LT(finished, 20);
  }
}

/// All finished translations of up to `limit` ids, the best score first.
void enumerate(const nn::Transformer& model, TokenIds source, const DecodingConfig& config,
               std::int32_t limit, std::vector<std::int32_t>& prefix, double log_probability,
               std::vector<Hypothesis>& found) {
  const std::vector<double> next = next_log_probabilities(model, source, prefix);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(next.size()); ++id) {
    if (id == bos_id) continue;
    const double sum = log_probability + next[static_cast<std::size_t>(id)];
    prefix.push_back(id);
    const auto length = static_cast<std::int32_t>(prefix.size()) - 1;
    if (id == eos_id)
      found.push_back({{prefix.begin() + 1, prefix.end()}, sum, sum / config.penalty(length), true});
    else if (length < limit)
      enumerate(model, source, config, limit, prefix, sum, found);
    prefix.pop_back();
  }
}

TEST(Translate, LayersMayHaveOtherNumbersOfHeadsOrNone) {
  nn::ModelConfig config = toy_config();
  config.heads = nn::HeadCounts::Lists{{{1, 0}, {0, 3}, {2, 0}}};
  config.head_dim = 5;
  const nn::Transformer model = toy_model(12, DType::f64, 3, config);
  const Sentences sources = random_sentences(6, 12, 8);
  DecodingConfig decoding;
  decoding.beam_size = 1;
  const auto found = translate(model, views(sources), decoding, 1);
  for (std::size_t i = 0; i < sources.size(); ++i)
    EXPECT_EQ(
        found[i].front().ids,
        plain_greedy(model, sources[i], decoding.target_limit(std::ssize(sources[i]), config.max_length))
            .ids);
}

TEST(Translate, WideBeamFindsWhatExhaustiveSearchFinds) {
  const nn::Transformer model = toy_model(5, DType::f64, 1.5);
  const Sentences sources = random_sentences(3, 5, 4);
  for (const LengthPenalty kind : {LengthPenalty::none, LengthPenalty::wu, LengthPenalty::length}) {
    DecodingConfig config = beam(300, 20);
    config.length_penalty_kind = kind;
    config.length_penalty = 1;
    config.max_length_ratio = 0;
    config.max_length_extra = 5;
    const Results results = translate(model, views(sources), config, 1);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::vector<Hypothesis> expected;
      std::vector<std::int32_t> prefix{bos_id};
      enumerate(model, sources[i], config, 5, prefix, 0, expected);
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
      ASSERT_EQ(results[i].size(), 20u);
      for (std::size_t n = 0; n < 20; ++n) {
        EXPECT_EQ(results[i][n].ids, expected[n].ids) << n;
        EXPECT_NEAR(results[i][n].log_probability, expected[n].log_probability, 1e-9);
        EXPECT_NEAR(results[i][n].score, expected[n].score, 1e-9);
        EXPECT_TRUE(results[i][n].finished);
      }
    }
  }
}

TEST(Translate, BatchSizeThreadsAndOrderChangeNothing) {
  const nn::Transformer model = toy_model(50);
  Sentences sources = random_sentences(40, 50, 14);
  for (DecodingConfig config : {beam(1), beam(4, 4)})
    for (const Method method : {Method::beam, Method::sampling}) {
      config.method = method;
      const Results expected = translate(model, views(sources), config, 1);
      for (const int tokens : {1, 60, 500}) {
        config.batch_tokens = tokens;
        for (const int threads : {1, 2, 5})
          EXPECT_EQ(translate(model, views(sources), config, threads), expected) << tokens << ' ' << threads;
      }
      Sentences reversed(sources.rbegin(), sources.rend());
      Results results = translate(model, views(reversed), config, 2);
      std::reverse(results.begin(), results.end());
      EXPECT_EQ(results, expected);
    }
}

TEST(Translate, NbestIsSortedDistinctAndScoredRight) {
  const nn::Transformer model = toy_model(30);
  const Sentences sources = random_sentences(15, 30, 8);
  DecodingConfig config = beam(6, 6);
  config.length_penalty_kind = LengthPenalty::length;
  config.length_penalty = 1;
  const Results results = translate(model, views(sources), config, 1);
  std::vector<TokenPair> pairs;
  std::vector<double> log_probabilities;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    ASSERT_FALSE(results[i].empty());
    ASSERT_LE(results[i].size(), 6u);
    for (std::size_t n = 0; n < results[i].size(); ++n) {
      const Hypothesis& h = results[i][n];
      EXPECT_DOUBLE_EQ(h.score, h.log_probability / static_cast<double>(h.ids.size()));
      EXPECT_EQ(h.finished, h.ids.back() == eos_id);
      EXPECT_EQ(h.finished, results[i][0].finished) << "finished and unfinished together";
      EXPECT_EQ(std::count(h.ids.begin(), h.ids.end(), bos_id), 0);
      for (std::size_t m = 0; m < n; ++m) {
        EXPECT_GE(results[i][m].score, h.score);
        EXPECT_NE(results[i][m].ids, h.ids);
      }
      pairs.push_back({sources[i], h.ids});
      log_probabilities.push_back(h.log_probability);
    }
  }
  const std::vector<Score> scores = score(model, pairs, 1);
  for (std::size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(scores[i].log_probability, log_probabilities[i], 1e-5 * std::max(1.0, -log_probabilities[i]));
}

TEST(Translate, BestOfNbestIsTheSameAsTheBestAlone) {
  const nn::Transformer model = toy_model(30);
  const Sentences sources = random_sentences(30, 30, 8);
  for (const LengthPenalty kind : {LengthPenalty::none, LengthPenalty::wu, LengthPenalty::length}) {
    DecodingConfig one = beam(4), all = beam(4, 4);
    one.length_penalty_kind = all.length_penalty_kind = kind;
    const Results best = translate(model, views(sources), one, 1),
                  nbest = translate(model, views(sources), all, 1);
    for (std::size_t i = 0; i < sources.size(); ++i) EXPECT_EQ(best[i][0], nbest[i][0]);
  }
}

TEST(Translate, StopsAtTheLengthLimit) {
  nn::Transformer model = toy_model(20);
  model.parameters().value(model.parameters().at("output/bias")).as<float>()[eos_id] = -1e4f;
  const Sentences sources = random_sentences(6, 20, 30);
  const Results results = translate(model, views(sources), beam(3, 3), 1);
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (const Hypothesis& h : results[i]) {
      EXPECT_EQ(h.ids.size(), std::min<std::size_t>(sources[i].size() + 6, 40));
      EXPECT_FALSE(h.finished);
    }
}

TEST(Translate, SourcesWithoutTokensGiveAnEmptyHypothesis) {
  const nn::Transformer model = toy_model(20);
  const Sentences sources{{eos_id}, {5, 6, eos_id}, {}, {7, eos_id}};
  std::int64_t done = 0;
  const Results results =
      translate(model, views(sources), beam(3), 2, [&](std::int64_t sentences) { done += sentences; });
  const std::vector<Hypothesis> empty{{{}, 0, 0, true}};
  EXPECT_EQ(results[0], empty);
  EXPECT_EQ(results[2], empty);
  EXPECT_FALSE(results[1][0].ids.empty());
  EXPECT_FALSE(results[3][0].ids.empty());
  EXPECT_EQ(done, 4);
  EXPECT_TRUE(translate(model, {}, beam(3), 2).empty());
}

TEST(Translate, NamesSentencesThatAreTooLong) {
  const nn::Transformer model = toy_model(20);
  const Sentences sources{{5, eos_id}, std::vector<std::int32_t>(41, 5)};
  EXPECT_EQ(message_of<DataError>([&] { translate(model, views(sources), beam(2), 1); }),
            "sentence 2 has 41 tokens, expected at most 40 (model.max_length)");
}

TEST(Translate, StopsOnNumbersThatAreNotFinite) {
  nn::Transformer model = toy_model(20);
  model.parameters().value(model.parameters().at("output/bias")).as<float>()[9] =
      std::numeric_limits<float>::quiet_NaN();
  const Sentences sources{{5, eos_id}};
  EXPECT_EQ(message_of<NumbersError>([&] { translate(model, views(sources), beam(2), 1); }),
            "sentence 1: log-probabilities of target token 1 are not numbers (NaN)");
}

}  // namespace
}  // namespace polyhead::decode
