#include "polyhead/train/probing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "polyhead/config/yaml.h"
#include "polyhead/core/unicode.h"
#include "polyhead/data/grammar/grammar.h"
#include "polyhead/decode/score.h"
#include "polyhead/metrics/metrics.h"
#include "polyhead/train/validation.h"
#include "support/message.h"

namespace polyhead::train {
namespace {

using data::Phenomenon;
using Ids = std::vector<std::int32_t>;
using Tokens = std::vector<std::string>;

/// A small model with random weights that knows the words of `pairs`.
struct Setting {
  Config config;
  text::TextPipeline pipeline;
  nn::Transformer model;

  explicit Setting(const std::vector<data::Pair>& pairs, std::vector<std::string> settings = {})
      : config(config::parse<Config>(R"(
data: {task: grammar}
training: {max_steps: 1}
tokenizer: {kind: word, shared: false}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 2, d_ff: 16, max_length: 80}
decoding: {beam_size: 1, max_length_ratio: 1, max_length_extra: 4}
)",
                                     "test", settings)),
        pipeline(learn(config, pairs)),
        model(config.model, pipeline.source().vocabulary().size(), pipeline.target().vocabulary().size()) {
    nn::ParameterStore& store = model.parameters();
    store.allocate(DType::f32);
    store.initialise(7);
    for (const nn::Parameter& p : store.parameters())
      for (float& x : store.value(p).span<float>()) x *= p.decays() ? 3.0F : 1.0F;
  }
  static text::TextPipeline learn(const Config& config, const std::vector<data::Pair>& pairs) {
    std::vector<std::string> sources, targets;
    for (const data::Pair& pair : pairs) {
      sources.push_back(data::text(pair.source));
      targets.push_back(data::text(pair.target));
      for (const data::Probe& p : pair.probes) targets.push_back(data::text(p.contrast));
    }
    return text::TextPipeline::learn(config.tokenizer, false, sources, targets);
  }

  ProbedText probe(const std::vector<data::Pair>& pairs, int threads = 2) const {
    return train::probe(model, pipeline, config, pairs, threads);
  }
  decode::Score score(const Tokens& source, const Tokens& target) const {
    const Ids source_ids = pipeline.encode_source(data::text(source)),
              target_ids = pipeline.encode_target(data::text(target));
    return decode::score(model, std::vector<decode::TokenPair>{{source_ids, target_ids}}, 1)[0];
  }
};

data::Probe probe_at(Phenomenon phenomenon, int slot, Tokens contrast, int distance = 0, int attractors = 0) {
  return {.phenomenon = phenomenon,
          .slot = slot,
          .distance = distance,
          .attractors = attractors,
          .contrast = std::move(contrast)};
}

data::Pair pair_of(Tokens source, Tokens target, std::vector<data::Probe> probes) {
  data::Pair pair;
  pair.source = std::move(source);
  pair.target = std::move(target);
  pair.probes = std::move(probes);
  return pair;
}

/// Whether `slot` has the word that is most probable there: each word of the vocabulary is scored in its place.
bool most_probable(const Setting& setting, const data::Pair& pair, int slot) {
  const auto at = static_cast<std::size_t>(slot);
  const Ids source = setting.pipeline.encode_source(data::text(pair.source)),
            target = setting.pipeline.encode_target(data::text(pair.target));
  std::vector<Ids> changed(static_cast<std::size_t>(setting.pipeline.target().vocabulary().size()), target);
  std::vector<decode::TokenPair> pairs;
  for (std::size_t id = 0; id < changed.size(); ++id) {
    changed[id][at] = static_cast<std::int32_t>(id);
    pairs.push_back({source, changed[id]});
  }
  const std::vector<decode::Score> scores = decode::score(setting.model, pairs, 1);
  const auto best = std::max_element(scores.begin(), scores.end(), [&](const auto& a, const auto& b) {
    return a.tokens[at] < b.tokens[at];
  });
  return best - scores.begin() == target[at];
}

TEST(Probe, IsWhatScoresOfSingleSentencesSay) {
  const std::vector<data::Pair> pairs = data::grammar::generate("test", 5, 3);
  const Setting setting(pairs);
  const ProbedText probed = setting.probe(pairs);
  ASSERT_EQ(probed.sentences.size(), pairs.size());
  std::size_t probes = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const ProbedSentence& sentence = probed.sentences[i];
    const double log_probability = setting.score(pairs[i].source, pairs[i].target).log_probability;
    EXPECT_EQ(sentence.log_probability, log_probability);
    EXPECT_EQ(sentence.exact_match, sentence.translation == data::text(pairs[i].target));
    ASSERT_EQ(sentence.probes.size(), pairs[i].probes.size());
    for (std::size_t p = 0; p < pairs[i].probes.size(); ++p, ++probes) {
      const data::Probe& probe = pairs[i].probes[p];
      const double other = setting.score(pairs[i].source, probe.contrast).log_probability;
      EXPECT_EQ(sentence.probes[p].margin, log_probability - other);
      EXPECT_EQ(sentence.probes[p].contrastive_correct(), log_probability > other);
      EXPECT_EQ(sentence.probes[p].slot_correct, most_probable(setting, pairs[i], probe.slot));
    }
  }
  EXPECT_GT(probes, 10u);
}

/// Greedy translations taken as targets: each of their words is the most probable one, no other word is.
TEST(Probe, FindsTheModelsOwnTranslationsCorrect) {
  std::vector<data::Pair> pairs = data::grammar::generate("test", 20, 4);
  const Setting setting(pairs);
  const ProbedText own = setting.probe(pairs);
  std::vector<data::Pair> right, wrong;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Tokens target = unicode::split(own.sentences[i].translation);
    if (target.size() < 3) continue;
    Tokens other = target;
    other[1] = target[1] == "." ? "," : ".";
    right.push_back(pair_of(pairs[i].source, target, {probe_at(Phenomenon::articles, 1, other)}));
    wrong.push_back(pair_of(pairs[i].source, other, {probe_at(Phenomenon::articles, 1, target)}));
  }
  ASSERT_GT(right.size(), 5u);
  const ProbedText probed_right = setting.probe(right), probed_wrong = setting.probe(wrong);
  for (std::size_t i = 0; i < right.size(); ++i) {
    const ProbedSentence &r = probed_right.sentences[i], &w = probed_wrong.sentences[i];
    EXPECT_TRUE(r.exact_match);
    EXPECT_TRUE(r.probes[0].slot_correct);
    EXPECT_FALSE(w.exact_match);
    EXPECT_FALSE(w.probes[0].slot_correct);
    EXPECT_EQ(r.probes[0].margin, -w.probes[0].margin);
  }
}

TEST(Probe, AWordOfSeveralPiecesIsCorrectWhenAllAre) {
  RandomStream random(RngKey{5});
  std::vector<data::Pair> pairs;
  for (int i = 0; i < 60; ++i) {
    std::string word;
    for (int letter = 0; letter < 2; ++letter) word += random.below(2) == 0 ? 'a' : 'b';
    pairs.push_back(pair_of({"x", std::string(1 + random.below(6), 'y')}, {word, "c"},
                            {probe_at(Phenomenon::names, 0, {"c"})}));
  }
  Setting setting(pairs, {"tokenizer.kind=char"});
  nn::ParameterStore& store = setting.model.parameters();
  for (const std::int32_t id : setting.pipeline.encode_target("ab"))
    if (id != text::eos_id) store.value(store.at("output/bias")).as<float>()[id] = 20;
  const ProbedText probed = setting.probe(pairs);
  int correct = 0, half = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Ids ids = setting.pipeline.encode_target(data::text(pairs[i].target));
    ASSERT_EQ(ids.size(), 5u);  // two letters, a space, c and the end
    const Ids predictions = setting.score(pairs[i].source, pairs[i].target).predictions;
    const bool first = predictions[0] == ids[0], second = predictions[1] == ids[1];
    EXPECT_EQ(probed.sentences[i].probes[0].slot_correct, first && second);
    correct += first && second ? 1 : 0;
    half += first != second ? 1 : 0;
  }
  EXPECT_GT(correct, 0);
  EXPECT_GT(half, 0);
}

TEST(Probe, DependsNeitherOnThreadsNorOnOtherSentences) {
  const std::vector<data::Pair> pairs = data::grammar::generate("length", 40, 5);
  const Setting setting(pairs);
  const ProbedText one = setting.probe(pairs, 1), three = setting.probe(pairs, 3),
                   last = setting.probe({pairs.back()}, 1);
  const auto expect_equal = [](const ProbedSentence& a, const ProbedSentence& b) {
    EXPECT_EQ(a.translation, b.translation);
    EXPECT_EQ(a.log_probability, b.log_probability);
    ASSERT_EQ(a.probes.size(), b.probes.size());
    for (std::size_t p = 0; p < a.probes.size(); ++p) {
      EXPECT_EQ(a.probes[p].margin, b.probes[p].margin);
      EXPECT_EQ(a.probes[p].slot_correct, b.probes[p].slot_correct);
    }
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) expect_equal(one.sentences[i], three.sentences[i]);
  expect_equal(one.sentences.back(), last.sentences[0]);
  const ProbingReport first = probing_report(pairs, one.sentences, {}, 1),
                      second = probing_report(pairs, one.sentences, {}, 3);
  ASSERT_EQ(first.phenomena.size(), second.phenomena.size());
  for (std::size_t i = 0; i < first.phenomena.size(); ++i)
    EXPECT_EQ(first.phenomena[i].second.chrf, second.phenomena[i].second.chrf);
}

TEST(Probe, NamesWhatTheModelIsTooShortFor) {
  const std::vector<data::Pair> pairs{
      pair_of({"x"}, {"a", "b"}, {probe_at(Phenomenon::names, 0, {"b", "b", "b", "b"})})};
  EXPECT_EQ(testing::message_of<DataError>([&] { Setting(pairs, {"model.max_length=4"}).probe(pairs); }),
            "\"b b b b\" has 4 pieces, expected at most 3 (model.max_length - 1)");
  std::vector<data::Pair> beyond = pairs;
  beyond[0].probes[0].slot = 2;
  EXPECT_EQ(testing::message_of<Error>([&] { Setting(beyond).probe(beyond); }),
            "a probe's slot is 2, but \"a b\" has 2 tokens");
}

/// Four sentences: three with agreement (four probes, one sentence with two), two with articles, one with neither.
struct Example {
  std::vector<data::Pair> pairs;
  std::vector<ProbedSentence> sentences;

  void add(bool exact, std::vector<data::Probe> probes, std::vector<ProbeOutcome> outcomes) {
    pairs.push_back(pair_of({"x"}, {"der", "Hund"}, std::move(probes)));
    sentences.push_back({.translation = exact ? "der Hund" : "die Hunde",
                         .exact_match = exact,
                         .log_probability = -1,
                         .probes = std::move(outcomes)});
  }
  Example() {
    add(true,
        {probe_at(Phenomenon::agreement, 1, {"x"}, 1, 0), probe_at(Phenomenon::agreement, 1, {"x"}, 4, 1)},
        {{true, 2.5}, {false, 1}});
    add(false, {probe_at(Phenomenon::agreement, 1, {"x"}, 4, 1), probe_at(Phenomenon::articles, 0, {"x"}, 1)},
        {{false, -1}, {true, 0}});
    add(true, {probe_at(Phenomenon::articles, 0, {"x"}, 1), probe_at(Phenomenon::agreement, 1, {"x"}, 2, 0)},
        {{true, 0.5}, {true, 1}});
    add(true, {}, {});
  }
};

TEST(ProbingReport, CountsSentencesAndProbes) {
  const Example example;
  const ProbingReport result = probing_report(example.pairs, example.sentences, {}, 2);
  const auto expect = [](const ProbeRates& rates, int exact, int sentences, int slots, int contrasts,
                         int probes) {
    EXPECT_EQ(rates.sentences, sentences);
    EXPECT_EQ(rates.probes, probes);
    EXPECT_EQ(rates.exact_match, metrics::wilson(exact, sentences));
    EXPECT_EQ(rates.slot_accuracy, metrics::wilson(slots, probes));
    EXPECT_EQ(rates.contrastive_accuracy, metrics::wilson(contrasts, probes));
  };
  expect(result.all.rates, 3, 4, 4, 4, 6);
  ASSERT_EQ(result.phenomena.size(), 2u);
  const auto& [articles, of_articles] = result.phenomena[0];
  EXPECT_EQ(articles, Phenomenon::articles);
  expect(of_articles.rates, 1, 2, 2, 1, 2);  // a margin of 0 is not right
  EXPECT_TRUE(of_articles.by_distance.empty() && of_articles.by_attractors.empty());
  const auto& [agreement, of_agreement] = result.phenomena[1];
  EXPECT_EQ(agreement, Phenomenon::agreement);
  expect(of_agreement.rates, 2, 3, 2, 3, 4);
  ASSERT_EQ(of_agreement.by_attractors.size(), 2u);
  expect(of_agreement.by_attractors.at(0), 2, 2, 2, 2, 2);
  expect(of_agreement.by_attractors.at(1), 1, 2, 0, 1, 2);
  ASSERT_EQ(of_agreement.by_distance.size(), 3u);
  expect(of_agreement.by_distance.at(4), 1, 2, 0, 1, 2);
  EXPECT_TRUE(of_agreement.by_depth.empty());

  // Three of four by hand: (0.75 + 1.9208/4 ± 1.96·√(0.1875/4 + 3.8416/64)) / (1 + 3.8416/4).
  EXPECT_NEAR(result.all.rates.exact_match.low, 30.06, 0.01);
  EXPECT_NEAR(result.all.rates.exact_match.high, 95.44, 0.01);
}

TEST(ProbingReport, GivesChrfOfTheSentencesThatHoldAPhenomenon) {
  const Example example;
  const ProbingReport result = probing_report(example.pairs, example.sentences, {}, 1);
  const auto chrf = [](const std::vector<std::string>& lines) {
    return metrics::corpus("chrf", lines, {std::vector<std::string>(lines.size(), "der Hund")}).score;
  };
  EXPECT_DOUBLE_EQ(result.all.chrf.score, chrf({"der Hund", "die Hunde", "der Hund", "der Hund"}));
  const metrics::Estimate of_articles = result.phenomena[0].second.chrf;
  EXPECT_DOUBLE_EQ(of_articles.score, chrf({"die Hunde", "der Hund"}));
  EXPECT_DOUBLE_EQ(of_articles.low, chrf({"die Hunde"}));  // a quarter of the samples each
  EXPECT_DOUBLE_EQ(of_articles.high, 100);
}

TEST(ProbingReport, NeedsAResultForEverySentence) {
  const Example example;
  EXPECT_EQ(testing::message_of<DataError>(
                [&] { probing_report(example.pairs, std::span(example.sentences).first(3), {}, 1); }),
            "probing: 3 results of 4 sentences");
  Example other;
  other.sentences[2].probes.pop_back();
  EXPECT_EQ(testing::message_of<DataError>([&] { probing_report(other.pairs, other.sentences, {}, 1); }),
            "probing: sentence 3 has 2 probes, but results of 1");
}

}  // namespace
}  // namespace polyhead::train
