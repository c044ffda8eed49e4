#include "polyhead/train/disagreement.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "polyhead/config/yaml.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/trainer.h"
#include "support/check_op.h"
#include "support/head_cosine.h"
#include "support/message.h"
#include "tiny_task.h"

namespace polyhead::train {
namespace {

using nn::AttentionKind;
using polyhead::testing::head_cosine;
using polyhead::testing::values;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int pair_count = 12;

/// The gradient of an update and what the loss without a term and D are, times target tokens.
struct OneUpdate {
  std::vector<double> gradients;
  ShardTotals totals;
};
OneUpdate update_with(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                      const DisagreementConfig& disagreement, int shards, int threads = 1) {
  std::vector<std::int32_t> pairs(pair_count);
  std::iota(pairs.begin(), pairs.end(), 0);
  std::vector<Worker> workers(static_cast<std::size_t>(threads));
  GradientStep step(model, shards, Precision::f32, workers, disagreement);
  const TreeReduction& sum = step.run(corpus, pairs, 0.1, RngKey{5}.fold(1));
  return {values(sum.gradients()), sum.totals()};
}

const DisagreementConfig all_three{.subspace = 0.7, .position = 1.3, .output = 0.4};

TEST(Disagreement, TheGradientIsThatOfTheLossWithItsTerms) {
  const data::ParallelCorpus corpus = tiny_corpus(pair_count, 12);
  const nn::Transformer model = tiny_model(DType::f64);
  const OneUpdate analytic = update_with(model, corpus, all_three, 2);
  const auto objective = [&] {
    const ShardTotals totals = update_with(model, corpus, all_three, 2).totals;
    double sum = totals.loss;
    for (std::size_t i = 0; i < 3; ++i) sum -= all_three.weights()[i] * totals.disagreement[i];
    return sum;
  };
  const nn::ParameterStore& store = model.parameters();
  for (const char* path :
       {"encoder/layers/0/self_attention/value/weight", "encoder/layers/1/self_attention/query/weight",
        "decoder/layers/0/self_attention/key/weight", "decoder/layers/0/cross_attention/value/weight",
        "embedding/weight"}) {
    const nn::Parameter& p = store.at(path);
    double* x = store.value(p).as<double>() + 37;
    const double kept = *x, step = 1e-5;
    *x = kept + step;
    const double above = objective();
    *x = kept - step;
    const double below = objective();
    *x = kept;
    const double numeric = (above - below) / (2 * step);
    EXPECT_NEAR(analytic.gradients[static_cast<std::size_t>(p.offset) + 37], numeric,
                1e-6 * std::max(1.0, std::abs(numeric)))
        << path;
  }
}

TEST(Disagreement, HowAnUpdateIsCutChangesOnlyRoundingAndThreadsNothing) {
  const data::ParallelCorpus corpus = tiny_corpus(pair_count, 12);
  const nn::Transformer model = tiny_model(DType::f64);
  const OneUpdate whole = update_with(model, corpus, all_three, 1),
                  cut = update_with(model, corpus, all_three, 5);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(cut.totals.disagreement[i], whole.totals.disagreement[i], 1e-10);
    EXPECT_LT(whole.totals.disagreement[i], 0);
    EXPECT_GE(whole.totals.disagreement[i], -whole.totals.tokens);
  }
  for (std::size_t i = 0; i < whole.gradients.size(); ++i)
    ASSERT_NEAR(cut.gradients[i], whole.gradients[i], 1e-10) << "element " << i;
  const OneUpdate two_threads = update_with(model, corpus, all_three, 5, 2);
  EXPECT_EQ(two_threads.gradients, cut.gradients);
  EXPECT_EQ(two_threads.totals, cut.totals);
}

TEST(Disagreement, ChangesTheGradientAndNotTheLossAndWithoutWeightsNothing) {
  const data::ParallelCorpus corpus = tiny_corpus(pair_count, 12);
  const nn::Transformer model = tiny_model(DType::f32);
  const OneUpdate plain = update_with(model, corpus, {}, 3);
  EXPECT_THAT(plain.totals.disagreement, Each(0));
  for (const DisagreementConfig& one : {DisagreementConfig{.subspace = 1}, DisagreementConfig{.position = 1},
                                        DisagreementConfig{.output = 1}}) {
    const OneUpdate with = update_with(model, corpus, one, 3);
    EXPECT_EQ(with.totals.loss, plain.totals.loss);
    EXPECT_NE(with.gradients, plain.gradients);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ((with.totals.disagreement[i] < 0), (one.weights()[i] > 0)) << i;
  }
}

double overlaps(const Tensor& weights) {
  const std::vector<double> w = values(weights);
  const std::int64_t heads = weights.shape[1], keys = weights.shape[2];
  double sum = 0;
  for (std::int64_t row = 0; row < weights.shape[0]; ++row)
    for (std::int64_t i = 0; i < heads; ++i)
      for (std::int64_t j = 0; j < heads; ++j)
        for (std::int64_t k = 0; k < keys; ++k)
          sum += w[static_cast<std::size_t>((row * heads + i) * keys + k)] *
                 w[static_cast<std::size_t>((row * heads + j) * keys + k)];
  return sum / static_cast<double>(heads * heads);
}

/// D of the attentions of one kind as an update has it, from a forward pass that is watched.
std::array<double, 3> watched(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                              AttentionKind kind) {
  std::vector<std::int32_t> pairs(pair_count);
  std::iota(pairs.begin(), pairs.end(), 0);
  const data::TokenCount tokens = data::count_tokens(corpus, pairs);
  std::vector<std::int32_t> source(static_cast<std::size_t>(tokens.source)),
      input(static_cast<std::size_t>(tokens.target)), output = input;
  std::vector<Segment> sources(pair_count), targets(pair_count);
  data::pack(corpus, pairs, {source, input, output, sources, targets});
  polyhead::testing::Workspace w;
  Tape tape(w.exec, false);
  const auto ids = [&](const std::vector<std::int32_t>& of) {
    return polyhead::testing::ids(w.activations, of);
  };
  std::array<double, 3> sums{};
  int attentions = 0;
  const nn::AttentionHook hook = [&](const nn::AttentionCall& call) {
    if (call.site.kind != kind) return nn::AttentionInputs{};
    ++attentions;
    std::int64_t longest = 0;
    for (const Segment& s : call.keys.spans) longest = std::max<std::int64_t>(longest, s.length);
    const Tensor weights =
        w.activations.tensor({call.queries.rows(), call.heads, longest}, model.parameters().dtype());
    return nn::AttentionInputs{
        .weights = weights, .observe = [&sums, weights](const nn::AttentionFlow& flow) {
          const auto mean = [&](double sum, const Var& rows) {
            return sum / static_cast<double>(rows.shape()[0]);
          };
          sums[0] += mean(head_cosine(flow.value.value(), flow.call.heads), flow.value);
          sums[1] += mean(overlaps(weights), flow.query);
          sums[2] += mean(head_cosine(flow.output.value(), flow.call.heads), flow.output);
        }};
  };
  model.loss({.tape = tape, .parameters = model.parameters(), .attention = &hook},
             {ids(source), {sources, 0}}, {ids(input), {targets, 0}}, ids(output), {});
  for (double& sum : sums) sum /= -attentions;
  return sums;
}

TEST(Disagreement, IsTheMeanOverRowsAndOverTheAttentionsAskedFor) {
  const data::ParallelCorpus corpus = tiny_corpus(pair_count, 12);
  nn::ModelConfig config;
  config.encoder_layers = config.decoder_layers = 2;
  config.d_model = config.d_ff = 16;
  config.head_dim = 4;
  config.heads = nn::HeadCounts::Lists{{{4, 2}, {1, 3}, {0, 2}}};
  config.dropout = 0;
  nn::Transformer model(config, 12, 12);
  model.parameters().allocate(DType::f64);
  model.parameters().initialise(2);
  for (const AttentionKind kind : nn::attention_kinds) {
    DisagreementConfig one = all_three;
    one.attention = {kind};
    const ShardTotals totals = update_with(model, corpus, one, 3).totals;
    const std::array<double, 3> expected = watched(model, corpus, kind);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(totals.disagreement[i] / totals.tokens, expected[i], 1e-10) << nn::name(kind) << " " << i;
  }
}

TEST(Disagreement, IsNothingWithoutWeightsOrWithoutHeads) {
  nn::ModelConfig model;
  model.encoder_layers = model.decoder_layers = 1;
  EXPECT_TRUE(Disagreement(DisagreementConfig{}, model).empty());
  EXPECT_FALSE(Disagreement(all_three, model).empty());
  DisagreementConfig cross = all_three;
  cross.attention = {AttentionKind::cross};
  model.heads = nn::HeadCounts::Lists{{{2}, {2}, {0}}};
  EXPECT_TRUE(Disagreement(cross, model).empty());
}

TEST(Disagreement, TheDryRunTakesWhatAnUpdateTakes) {
  const data::ParallelCorpus corpus = tiny_corpus(pair_count, 12);
  const nn::Transformer model = tiny_model(DType::f32);
  std::vector<std::int32_t> pairs(pair_count);
  std::iota(pairs.begin(), pairs.end(), 0);
  const auto peaks = [&](const DisagreementConfig& disagreement) {
    std::vector<Worker> workers(1);
    GradientStep step(model, 1, Precision::f32, workers, disagreement);
    step.dry_run(corpus, pairs);
    const std::size_t dry = workers[0].peak_bytes();
    step.run(corpus, pairs, 0.1, RngKey{5}.fold(1));
    EXPECT_EQ(workers[0].peak_bytes(), dry);
    return dry;
  };
  EXPECT_GT(peaks(all_three), peaks({}));
}

class DisagreementTraining : public ::testing::Test {
 protected:
  DisagreementTraining() {
    std::string pattern = (std::filesystem::temp_directory_path() / "polyhead_disagreement_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~DisagreementTraining() override { std::filesystem::remove_all(folder_); }

  struct Recorder : Observer {
    std::array<double, 3> last{};  // means of the last ten updates
    double loss = 0;
    void step(const StepReport& report) override {
      for (std::size_t i = 0; i < 3; ++i)
        if (report.step > 30) last[i] += report.disagreement[i].value_or(NAN) / 10;
    }
    void validated(std::int64_t, const Figures& figures, bool) override { loss = figures.at(Metric::loss); }
  };

  Recorder run(const std::string& name, const std::string& disagreement) const {
    const std::vector<std::string> settings{"training.disagreement=" + disagreement};
    const auto config = config::parse<Config>(R"(
data: {task: copy, train_size: 200, valid_size: 20, test_size: 10}
tokenizer: {kind: word}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 4, d_ff: 32, dropout: 0}
training: {batch_tokens: 128, lanes: 2, max_steps: 40, learning_rate: 0.01, schedule: constant, warmup_steps: 0,
           validate_every: 40, checkpoint_every: 40}
)",
                                              "base", settings);
    Recorder recorder;
    train(config, {.folder = folder_ + "/" + name, .threads = 1}, recorder);
    return recorder;
  }
  std::string log(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name + "/train.jsonl");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string folder_;
};

TEST_F(DisagreementTraining, HeadsDifferMoreThanWithoutAndTheLogSaysSo) {
  const Recorder free = run("free", "{subspace: 1e-9, position: 1e-9, output: 1e-9}");
  const char* names[] = {"subspace", "position", "output"};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = names[i];
    const Recorder asked = run(name, "{" + name + ": 3}");
    EXPECT_GT(asked.last[i], free.last[i] + 0.02) << name;
    for (std::size_t other = 0; other < 3; ++other)
      EXPECT_EQ(log(name).find(std::string("\"disagreement_") + names[other]) != std::string::npos,
                other == i);
  }
  run("off", "{}");
  EXPECT_THAT(log("off"), Not(HasSubstr("disagreement")));
}

TEST_F(DisagreementTraining, ValidationIsOfTheLikelihoodAlone) {
  const Recorder trained = run("output", "{output: 2}");
  const LoadedModel loaded = load_model(folder_ + "/output");
  const data::ParallelText text = data::load_text(loaded.config.data, data::Split::valid, loaded.config.seed);
  std::vector<Worker> workers(1);
  const Figures figures =
      loss_figures(*loaded.model, loss_corpus(loaded.config, text, loaded.pipeline), 128, workers);
  EXPECT_NEAR(figures.at(Metric::loss), trained.loss, 1e-12);
}

TEST(DisagreementSettings, RefuseWhatIsNoWeightOrNoAttention) {
  const auto message = [](const std::string& disagreement) {
    return polyhead::testing::message_of<Error>([&] {
      config::parse<Config>("training: {max_steps: 1, disagreement: " + disagreement + "}", "c.yaml");
    });
  };
  const std::string at = "c.yaml:1: training.disagreement.";
  EXPECT_EQ(message("{subspace: -0.5}"), at + "subspace: -0.5, expected at least 0");
  EXPECT_EQ(message("{position: .nan}"), at + "position: \".nan\", expected a finite number");
  EXPECT_EQ(message("{output: .inf}"), at + "output: \".inf\", expected a finite number");
  EXPECT_EQ(message("{attention: []}"), at + "attention: [], expected not empty");
  EXPECT_EQ(message("{attention: [encoder, self]}"),
            at + "attention[1]: \"self\", expected one of encoder, decoder, cross");
  EXPECT_THAT(message("{outputs: 1}"), HasSubstr("output"));
  EXPECT_EQ(message("{output: 1, attention: [encoder, cross]}"), "nothing thrown");
}

}  // namespace
}  // namespace polyhead::train
