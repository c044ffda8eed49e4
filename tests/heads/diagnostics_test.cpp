#include "polyhead/heads/diagnostics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models.h"
#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = nn::AttentionKind;

/// A layer of two heads of two features each, in f64.
nn::ModelConfig small_config() {
  nn::ModelConfig config = decode::toy_config();
  config.encoder_layers = config.decoder_layers = 1;
  config.d_model = 4;
  config.d_ff = 6;
  return config;
}

/// Statistics of outputs before W^O, whose slices are both the identity on the first two features.
struct KnownOutputs {
  nn::Transformer model = decode::toy_model(12, DType::f64, 3, small_config());
  std::vector<Head> heads = all_heads(model.config());
  OutputStatistics statistics{model, heads};

  explicit KnownOutputs(std::vector<double> rows, double second_scale = 1) {
    nn::ParameterStore& store = model.parameters();
    const Tensor weight = store.value(store.at("encoder/layers/0/self_attention/output/weight"));
    fill_zero(weight);
    for (const int i : {0, 1}) {
      weight.as<double>()[i * 4 + i] = 1;
      weight.as<double>()[i * 4 + 2 + i] = second_scale;
    }
    statistics = OutputStatistics(model, heads);
    statistics.add({Kind::encoder, 0}, {rows.data(), {std::ssize(rows) / 4, 4}, DType::f64});
  }
};

TEST(OutputFigures, HaveTheNormsAndCosinesOfKnownOutputs) {
  const KnownOutputs known({3, 4, 4, 3, 0, 2, 2, 0});
  const OutputFigures f = known.statistics.figures(0);
  EXPECT_EQ(f.value_dim, 2);
  EXPECT_NEAR(f.output_norm, (5 + 2) / 2., 1e-12);
  // The sums are (7, 7) and (2, 2).
  EXPECT_NEAR(f.relative_output_norm, 7 / (9 * std::sqrt(2)), 1e-12);
  EXPECT_NEAR(known.statistics.cosine(0, 1), (24. / 25 + 0) / 2, 1e-12);
  EXPECT_EQ(known.statistics.cosine(1, 0), known.statistics.cosine(0, 1));
  EXPECT_EQ(known.statistics.cosine(1, 1), 1);
}

/// With u = (1, 1, −1, −1) and v = (1, −1, 1, −1), which are orthogonal and centred.
TEST(OutputFigures, HaveTheRankAndAlignmentOfKnownOutputs) {
  const auto of = [](double a0, double a1, double b0, double b1, double shift = 0) {
    std::vector<double> rows;
    for (const auto& [u, v] : {std::pair{1, 1}, {1, -1}, {-1, 1}, {-1, -1}})
      rows.insert(rows.end(), {a0 * u + shift, a1 * v, b0 * u, b1 * v - shift});
    return KnownOutputs(rows, 0.5);
  };
  EXPECT_NEAR(of(1, 1, 1, 0).statistics.figures(0).effective_rank, 2, 1e-9);
  EXPECT_NEAR(of(1, 1, 1, 0).statistics.figures(1).effective_rank, 1, 1e-9);
  // Singular values 2 and 1: exp(ln 3 − ⅔ ln 2)
  EXPECT_NEAR(of(2, 1, 1, 0, 5).statistics.figures(0).effective_rank, 3 / std::pow(2, 2. / 3), 1e-9);
  EXPECT_EQ(of(0, 0, 1, 1, 5).statistics.figures(0).effective_rank, 0);  // constant
  EXPECT_NEAR(of(1, 1, 1, 0, 3).statistics.cka(0, 1), 1 / std::sqrt(2), 1e-9);
  EXPECT_NEAR(of(1, 1, 3, 3).statistics.cka(0, 1), 1, 1e-9);
  EXPECT_NEAR(of(1, 0, 0, 1).statistics.cka(1, 0), 0, 1e-9);
  EXPECT_TRUE(std::isnan(of(0, 0, 1, 1).statistics.cka(0, 1)));
}

double loss_of(const nn::Transformer& model, std::span<const decode::TokenPair> pairs) {
  double sum = 0, tokens = 0;
  for (const decode::Score& score : decode::score(model, pairs, 1)) {
    sum -= score.log_probability;
    tokens += static_cast<double>(score.tokens.size());
  }
  return sum / tokens;
}

TEST(OutputFigures, HaveTheGradientOfFiniteDifferences) {
  nn::Transformer model = decode::toy_model(12, DType::f64, 3, small_config());
  const RandomPairs pairs(3, 12, 4);
  const std::vector<Head> heads = all_heads(model.config());
  const Outputs outputs = measure_outputs(model, heads, pairs.ids, 1);
  nn::ParameterStore& store = model.parameters();
  for (const std::size_t h : {0u, 3u, 4u}) {  // one of each kind
    double squares = 0;
    for (const char* name :
         {"/query/weight", "/query/bias", "/key/weight", "/value/weight", "/value/bias", "/output/weight"}) {
      const bool output = std::string_view(name) == "/output/weight";
      const nn::Parameter& p = store.at(path(heads[h].site) + name);
      const std::int64_t width = p.shape.rank() > 1 ? p.shape[1] : 1;
      for (std::int64_t i = 0; i < p.size(); ++i) {
        if ((output ? i % width : i / width) / 2 != heads[h].head) continue;
        double& x = store.value(p).as<double>()[i];
        const double kept = x, step = 1e-5;
        x = kept + step;
        const double above = loss_of(model, pairs.ids);
        x = kept - step;
        squares += std::pow((above - loss_of(model, pairs.ids)) / (2 * step), 2);
        x = kept;
      }
    }
    // A key's bias has no gradient: softmax ignores it.
    EXPECT_NEAR(outputs.figures[h].gradient_norm, std::sqrt(squares), 1e-6) << h;
  }
}

text::TextPipeline letters() {
  text::TokenizerConfig tokenizer;
  tokenizer.kind = "word";
  return text::TextPipeline::learn(tokenizer, false, {"a b c d e f g h ."}, {"a b c d e f g h ."});
}

TEST(Diagnose, DoesNotDependOnThreads) {
  const text::TextPipeline pipeline = letters();
  const nn::Transformer model = decode::toy_model(pipeline.source().size());
  const RandomPairs pairs(180, pipeline.source().size(), 15);
  const Diagnostics one = diagnose(model, pipeline, pairs.ids, 1),
                    more = diagnose(model, pipeline, pairs.ids, 3);
  ASSERT_EQ(one.heads.size(), 12u);
  ASSERT_EQ(one.similarities.size(), 6u);
  ASSERT_EQ(one.rollouts.size(), 4u);
  for (std::size_t h = 0; h < 12; ++h) {
    EXPECT_EQ(one.heads[h].head, all_heads(model.config())[h]);
    EXPECT_EQ(one.heads[h].weights.entropy, more.heads[h].weights.entropy);
    EXPECT_EQ(one.heads[h].weights.separator_mass, more.heads[h].weights.separator_mass);
    EXPECT_EQ(one.heads[h].outputs.output_norm, more.heads[h].outputs.output_norm);
    EXPECT_EQ(one.heads[h].outputs.effective_rank, more.heads[h].outputs.effective_rank);
    EXPECT_EQ(one.heads[h].outputs.gradient_norm, more.heads[h].outputs.gradient_norm);
  }
  for (std::size_t s = 0; s < 6; ++s) {
    EXPECT_EQ(one.similarities[s].heads, 2u);
    EXPECT_EQ(one.similarities[s].jensen_shannon, more.similarities[s].jensen_shannon);
    EXPECT_EQ(one.similarities[s].cka, more.similarities[s].cka);
    EXPECT_EQ(one.similarities[s].cosine, more.similarities[s].cosine);
  }
  for (std::size_t l = 0; l < 4; ++l) EXPECT_EQ(one.rollouts[l].self, more.rollouts[l].self);
}

TEST(Diagnose, FindsTwinsAndTheDead) {
  const text::TextPipeline pipeline = letters();
  nn::Transformer model = decode::toy_model(pipeline.source().size());
  nn::ParameterStore& store = model.parameters();
  const auto values = [&](const std::string& name) { return store.value(store.at(name)).as<float>(); };
  // Of the encoder's first layer the second head is made the first's twin, of the second layer one head writes nothing.
  for (const char* projection : {"query", "key", "value"}) {
    float* weight = values(concat("encoder/layers/0/self_attention/", projection, "/weight"));
    std::copy_n(weight, 8 * 16, weight + 8 * 16);
  }
  float* twin = values("encoder/layers/0/self_attention/output/weight");
  float* dead = values("encoder/layers/1/self_attention/output/weight");
  for (std::int64_t row = 0; row < 16; ++row)
    for (std::int64_t c = 0; c < 8; ++c) {
      twin[row * 16 + 8 + c] = 2 * twin[row * 16 + c];
      dead[row * 16 + c] = 0;
    }
  const RandomPairs pairs(40, pipeline.source().size(), 9);
  const Diagnostics d = diagnose(model, pipeline, pairs.ids, 2);
  EXPECT_NEAR(d.similarities[0].cka[1], 1, 1e-5);
  EXPECT_NEAR(d.similarities[0].cosine[1], 1, 1e-5);
  EXPECT_NEAR(d.similarities[0].jensen_shannon[1], 0, 1e-5);
  EXPECT_NEAR(d.heads[1].outputs.output_norm, 2 * d.heads[0].outputs.output_norm, 1e-4);
  EXPECT_EQ(d.heads[2].outputs.output_norm, 0);
  bool redundant = false, is_dead = false;
  for (const Warning& w : warnings(d)) {
    redundant = redundant || (w.warning == "redundant" && w.head == d.heads[1].head && w.other == 0);
    is_dead = is_dead || (w.warning == "dead" && w.head == d.heads[2].head && w.value == 0);
  }
  EXPECT_TRUE(redundant);
  EXPECT_TRUE(is_dead);
}

/// Three healthy heads of one attention.
Diagnostics healthy() {
  Diagnostics d;
  for (int h = 0; h < 3; ++h) {
    HeadDiagnostics head{{{Kind::cross, 1}, h}, {}, {}};
    head.weights.positions = 10;
    head.weights.saturation = 0.5;
    head.weights.logit_deviation = 2;
    head.outputs = {.value_dim = 4,
                    .output_norm = 1,
                    .relative_output_norm = 0.5,
                    .effective_rank = 3,
                    .gradient_norm = 1e-3};
    d.heads.push_back(head);
  }
  d.similarities.push_back({{Kind::cross, 1}, 3, {}, {1, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 1}, {}});
  return d;
}

TEST(Warnings, NameTheFigureThatSaysSo) {
  EXPECT_THAT(warnings(healthy()), IsEmpty());
  const auto expect = [](auto change, const std::string& start) {
    Diagnostics d = healthy();
    change(d);
    const std::vector<Warning> found = warnings(d);
    ASSERT_EQ(found.size(), 1u) << start;
    EXPECT_THAT(found[0].message(), AllOf(HasSubstr(start), HasSubstr("; ")));
  };
  expect([](Diagnostics& d) { d.heads[1].outputs.effective_rank = 1.25; },
         "cross layer 1 head 1 is collapsed: effective_rank 1.25 < 1.5");
  expect([](Diagnostics& d) { d.heads[0].weights.saturation = 0.96875; },
         "cross layer 1 head 0 is saturated: saturation 0.96875 > 0.95");
  expect([](Diagnostics& d) { d.similarities[0].cka[7] = 0.984375; },
         "cross layer 1 head 2 is redundant with head 1: cka 0.984375 > 0.98");
  expect([](Diagnostics& d) { d.heads[2].outputs.relative_output_norm = 0.0078125; },
         "cross layer 1 head 2 is dead: relative_output_norm 0.0078125 < 0.01");
  expect([](Diagnostics& d) { d.heads[2].outputs.output_norm = 0.0078125; },
         "cross layer 1 head 2 is dead: output_norm 0.0078125 < 0.01");
  expect([](Diagnostics& d) { d.heads[2].weights.logit_deviation = 12.5; },
         "cross layer 1 head 2 is exploding: logit_deviation 12.5 > 10");
  expect([](Diagnostics& d) { d.heads[2].outputs.gradient_norm = 0.02; },
         "cross layer 1 head 2 is exploding: gradient_norm 20 > 10; in multiples of the heads' median");
  expect(
      [](Diagnostics& d) { d.heads[0].weights.logit_deviation = std::numeric_limits<double>::quiet_NaN(); },
      "cross layer 1 head 0 is exploding: logit_deviation nan");
  // One feature has one direction.
  Diagnostics narrow = healthy();
  for (HeadDiagnostics& head : narrow.heads) {
    head.outputs.value_dim = 1;
    head.outputs.effective_rank = 1;
  }
  EXPECT_THAT(warnings(narrow), IsEmpty());
}

}  // namespace
}  // namespace polyhead::heads
