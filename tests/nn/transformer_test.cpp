#include "polyhead/nn/transformer.h"

#include <gmock/gmock.h>

#include <numeric>

#include "models.h"

namespace polyhead::nn {
namespace {

using namespace polyhead::testing;

bool has(const Transformer& model, std::string_view path) {
  for (const Parameter& p : model.parameters().parameters())
    if (p.path == path) return true;
  return false;
}

ModelConfig with_ties(TieEmbeddings ties) {
  ModelConfig config = tiny_config();
  config.tie_embeddings = ties;
  return config;
}

TEST(Transformer, TiesDecideWhichMatricesThereAre) {
  const Transformer none(with_ties(TieEmbeddings::none), 10, 12),
      target(with_ties(TieEmbeddings::target), 10, 12), all(with_ties(TieEmbeddings::all), 10, 10);
  for (const Transformer* model : {&none, &target}) {
    EXPECT_EQ(model->parameters().at("encoder/embedding/weight").shape, (Shape{10, 8}));
    EXPECT_EQ(model->parameters().at("decoder/embedding/weight").shape, (Shape{12, 8}));
    EXPECT_FALSE(has(*model, "embedding/weight"));
  }
  EXPECT_EQ(none.parameters().at("output/weight").shape, (Shape{12, 8}));
  EXPECT_FALSE(has(target, "output/weight"));
  EXPECT_EQ(all.parameters().at("embedding/weight").shape, (Shape{10, 8}));
  EXPECT_FALSE(has(all, "encoder/embedding/weight"));
  EXPECT_FALSE(has(all, "decoder/embedding/weight"));
  EXPECT_FALSE(has(all, "output/weight"));
  EXPECT_EQ(target.parameters().count() - all.parameters().count(), 12 * 8 + 12 - 10);
  EXPECT_EQ(none.parameters().count() - target.parameters().count(), 12 * 8);
}

TEST(Transformer, SettingsDecideWhichOtherParametersThereAre) {
  ModelConfig config = tiny_config();
  EXPECT_FALSE(has(Transformer(config, 10, 10), "encoder/norm/gamma"));
  EXPECT_FALSE(has(Transformer(config, 10, 10), "encoder/positions/weight"));
  config.norm = Norm::pre;
  config.positions = Positions::learned;
  config.bias = false;
  const Transformer model(config, 10, 10);
  EXPECT_TRUE(has(model, "encoder/norm/gamma"));
  EXPECT_TRUE(has(model, "decoder/norm/beta"));
  EXPECT_EQ(model.parameters().at("encoder/positions/weight").shape, (Shape{8, 8}));
  EXPECT_EQ(model.parameters().at("decoder/positions/weight").shape, (Shape{8, 8}));
  for (const Parameter& p : model.parameters().parameters()) EXPECT_FALSE(p.path.ends_with("bias")) << p.path;
}

TEST(Transformer, TiedVocabulariesOfDifferentSizesAreAnError) {
  EXPECT_EQ(
      error_of([] { Transformer(with_ties(TieEmbeddings::all), 10, 12); }),
      "model.tie_embeddings: all, but the vocabularies have 10 and 12 pieces, expected one shared vocabulary "
      "(tokenizer.shared: true)");
}

TEST(Transformer, SentencesLongerThanMaxLengthAreAnError) {
  for (const Positions positions : {Positions::sinusoidal, Positions::learned, Positions::none}) {
    ModelConfig config = tiny_config();
    config.positions = positions;
    const Transformer model = tiny_model(config);
    const std::vector<std::int32_t> eight(8, 3), nine(9, 3);
    EXPECT_GT(run_batch(model, Batch({{eight, eight}})).loss, 0);
    EXPECT_EQ(error_of([&] {
                run_batch(model, Batch({{nine, eight}}));
              }),
              "position 8 in a sentence, expected below model.max_length 8");
    EXPECT_EQ(error_of([&] {
                run_batch(model, Batch({{eight, nine}}));
              }),
              "position 8 in a sentence, expected below model.max_length 8");
  }
}

TEST(Transformer, IdsOutsideTheVocabularyAreAnError) {
  const Transformer model = tiny_model(tiny_config());
  EXPECT_THAT(error_of([&] { run_batch(model, Batch({{{10, 2}, {3, 2}}})); }), ::testing::HasSubstr("10"));
  EXPECT_THAT(error_of([&] { run_batch(model, Batch({{{3, 2}, {-1, 2}}})); }), ::testing::HasSubstr("-1"));
}

/// Models with every kind of parameter and setting between them; without ReLU, which has a kink.
std::vector<ModelConfig> smooth_configs() {
  ModelConfig a = tiny_config();
  a.activation = ops::Activation::gelu;
  a.norm = Norm::pre;
  a.positions = Positions::learned;
  a.tie_embeddings = TieEmbeddings::none;
  a.head_dim = 3;
  a.value_dim = 5;
  a.dropout = 0.2;
  a.attention_dropout = 0.1;
  a.activation_dropout = 0.15;
  ModelConfig b = tiny_config();
  b.activation = ops::Activation::swish;
  b.tie_embeddings = TieEmbeddings::all;
  b.heads = 4;
  b.decoder_layers = 2;
  ModelConfig c = tiny_config();
  c.activation = ops::Activation::gelu;
  c.positions = Positions::none;
  c.bias = false;
  return {a, b, c};
}

TEST(Transformer, GradientsAgreeWithDifferences) {
  constexpr double step = 1e-5;
  for (const ModelConfig& config : smooth_configs()) {
    const Transformer model = tiny_model(config);
    const ParameterStore& store = model.parameters();
    const Batch batch(pairs);
    const LossAndGradients analytic = run_batch(model, batch, true);
    for (const Parameter& p : store.parameters())
      for (const std::int64_t i : {std::int64_t{0}, p.size() / 2, p.size() - 1}) {
        double& x = store.value(p).as<double>()[i];
        const double kept = x;
        x = kept + step;
        const double above = run_batch(model, batch, true).loss;
        x = kept - step;
        const double below = run_batch(model, batch, true).loss;
        x = kept;
        const double numeric = (above - below) / (2 * step);
        EXPECT_NEAR(analytic.gradients[static_cast<std::size_t>(p.offset + i)], numeric,
                    1e-6 * std::max(1.0, std::abs(numeric)))
            << p.path << " element " << i;
      }
  }
}

TEST(Transformer, ABatchIsTheSumOfItsSentences) {
  for (const ModelConfig& config : smooth_configs()) {
    const Transformer model = tiny_model(config);
    const LossAndGradients whole = run_batch(model, Batch(pairs));
    LossAndGradients sum{0, {}, std::vector<double>(whole.gradients.size())};
    for (const Pair& pair : pairs) {
      const LossAndGradients one = run_batch(model, Batch({pair}));
      sum.loss += one.loss;
      sum.token_loss.insert(sum.token_loss.end(), one.token_loss.begin(), one.token_loss.end());
      for (std::size_t i = 0; i < sum.gradients.size(); ++i) sum.gradients[i] += one.gradients[i];
    }
    EXPECT_NEAR(whole.loss, sum.loss, 1e-11);
    expect_near(whole.token_loss, sum.token_loss, 1e-12);
    expect_near(whole.gradients, sum.gradients, 1e-11);
  }
}

TEST(Transformer, DropoutFollowsTheSentenceIntoAnotherLane) {
  const Transformer model = tiny_model(smooth_configs()[0]);
  const LossAndGradients whole = run_batch(model, Batch(pairs, 4), true);
  const LossAndGradients head = run_batch(model, Batch({pairs[0]}, 4), true),
                         tail = run_batch(model, Batch({pairs[1], pairs[2]}, 5), true);
  std::vector<double> joined = head.token_loss;
  joined.insert(joined.end(), tail.token_loss.begin(), tail.token_loss.end());
  expect_near(joined, whole.token_loss, 1e-12);
  EXPECT_NE(run_batch(model, Batch({pairs[0]}, 5), true).loss, head.loss);
  EXPECT_NE(run_batch(model, Batch({pairs[0]}, 4), false).loss, head.loss);
  EXPECT_EQ(run_batch(model, Batch({pairs[0]}, 4), true).gradients, head.gradients);
}

TEST(Transformer, DropoutIsOffWhenNotTraining) {
  ModelConfig config = smooth_configs()[0];
  const LossAndGradients with = run_batch(tiny_model(config), Batch(pairs), false);
  config.dropout = config.attention_dropout = config.activation_dropout = 0;
  const LossAndGradients without = run_batch(tiny_model(config), Batch(pairs), false);
  EXPECT_EQ(with.loss, without.loss);
  EXPECT_EQ(with.gradients, without.gradients);
}

TEST(Transformer, PermutingTheSourceChangesNothingWithoutPositions) {
  ModelConfig config = tiny_config();
  const auto losses = [&] {
    const Transformer model = tiny_model(config);
    const LossAndGradients a = run_batch(model, Batch({{{3, 4, 5, 6, 2}, {7, 8, 2}}})),
                           b = run_batch(model, Batch({{{6, 3, 2, 5, 4}, {7, 8, 2}}}));
    return std::pair{a.loss, b.loss};
  };
  config.positions = Positions::none;
  const auto [a, b] = losses();
  EXPECT_NEAR(a, b, 1e-12);
  config.positions = Positions::sinusoidal;
  const auto [c, d] = losses();
  EXPECT_GT(std::abs(c - d), 1e-3);
}

TEST(Transformer, StepsGiveWhatDecodingTheWholePrefixGives) {
  for (const ModelConfig& config : smooth_configs()) {
    const Transformer model = tiny_model(config);
    const Batch batch(pairs);
    Workspace w;
    Tape tape(w.exec, false);
    const Context context{tape, model.parameters()};
    const Var memory = model.encode(context, batch.source);
    const std::vector<double> full =
        values(model.decode(context, batch.target, memory, batch.source.segments).value());
    DecoderState state = model.start(context, memory, static_cast<std::int64_t>(pairs.size()), 8);
    for (std::size_t sentence = 0; sentence < pairs.size(); ++sentence) {
      const auto own = static_cast<std::int32_t>(sentence);
      const Segment target = batch.targets[sentence];
      for (std::int32_t row = target.begin; row < target.begin + target.length; ++row) {
        const std::vector<std::int32_t> id{batch.target.ids.as<std::int32_t>()[row]}, slot{own};
        EXPECT_EQ(state.length(own), row - target.begin);
        const Var features = model.step(context, id, slot, {{&batch.sources[sentence], 1}, 0}, state);
        expect_near(values(features.value()), {full.begin() + row * 8, full.begin() + (row + 1) * 8}, 1e-12);
      }
    }
  }
}

TEST(Transformer, LogProbabilitiesSumToOneAndGiveTheLoss) {
  const Transformer model = tiny_model(tiny_config());
  const Batch batch(pairs);
  Workspace w;
  Tape tape(w.exec, false);
  const Context context{tape, model.parameters()};
  const Var features =
      model.decode(context, batch.target, model.encode(context, batch.source), batch.source.segments);
  const std::vector<double> rows = values(model.log_probabilities(context, features).value());
  const Tensor predictions = w.activations.tensor(batch.outputs.shape, DType::i32);
  double sum = 0, smoothed = 0;
  const std::vector<double> token_loss = run_batch(model, batch).token_loss;
  model.loss(context, batch.source, batch.target, batch.outputs, {.predictions = predictions});
  for (std::size_t n = 0; n < token_loss.size(); ++n) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(10 * n);
    double total = 0;
    for (std::ptrdiff_t v = 0; v < 10; ++v) total += std::exp(row[v]);
    EXPECT_NEAR(total, 1, 1e-12);
    EXPECT_NEAR(-row[batch.outputs.as<std::int32_t>()[n]], token_loss[n], 1e-12);
    EXPECT_EQ(std::max_element(row, row + 10) - row, predictions.as<std::int32_t>()[n]);
    sum += token_loss[n];
    smoothed += 0.9 * token_loss[n] - 0.01 * std::accumulate(row, row + 10, 0.0);
  }
  EXPECT_NEAR(run_batch(model, batch).loss, smoothed, 1e-11);
  const Var plain = model.loss(context, batch.source, batch.target, batch.outputs, {});
  EXPECT_NEAR(values(plain.value())[0], sum, 1e-11);
}

ModelConfig with_lists() {
  ModelConfig config = tiny_config();
  config.heads = HeadCounts::Lists{{{1, 0}, {0}, {3}}};
  config.head_dim = 4;
  return config;
}

TEST(Transformer, LayersMayHaveNumbersOfHeadsOfTheirOwn) {
  const Transformer model(with_lists(), 10, 10);
  const auto shape = [&](const char* path) { return model.parameters().at(path).shape; };
  EXPECT_EQ(shape("encoder/layers/0/self_attention/query/weight"), (Shape{4, 8}));
  EXPECT_EQ(shape("decoder/layers/0/cross_attention/value/weight"), (Shape{12, 8}));
  EXPECT_EQ(shape("decoder/layers/0/cross_attention/output/weight"), (Shape{8, 12}));
  for (const char* empty : {"encoder/layers/1/self_attention/", "decoder/layers/0/self_attention/"}) {
    for (const char* part : {"query/weight", "query/bias", "key/weight", "value/weight", "output/weight"})
      EXPECT_FALSE(has(model, std::string(empty) + part)) << empty << part;
    EXPECT_EQ(shape((std::string(empty) + "output/bias").c_str()), (Shape{8}));
  }
}

TEST(Transformer, WithoutHeadsOfAKindHasGradients) {
  const Transformer model = tiny_model(with_lists());
  const LossAndGradients result = run_batch(model, Batch(pairs));
  const Slab gradients({model.parameters().slab_size()}, DType::f64);
  std::copy(result.gradients.begin(), result.gradients.end(), gradients.tensor().as<double>());
  const Parameter& bias = model.parameters().at("decoder/layers/0/self_attention/output/bias");
  const std::vector<double> analytic = values(ParameterStore::view(bias, gradients.tensor()));
  double* value = model.parameters().value(bias).as<double>();
  for (std::size_t i = 0; i < 8; ++i) {
    const double kept = value[i];
    value[i] = kept + 1e-5;
    const double above = run_batch(model, Batch(pairs)).loss;
    value[i] = kept - 1e-5;
    const double below = run_batch(model, Batch(pairs)).loss;
    value[i] = kept;
    EXPECT_NEAR(analytic[i], (above - below) / 2e-5, 1e-6);
  }
}

}  // namespace
}  // namespace polyhead::nn
