#include "polyhead/nn/attention/hook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models.h"

namespace polyhead::nn {
namespace {

using namespace polyhead::testing;

struct Tapped {
  AttentionSite site;
  Tensor weights;
  Segments queries, keys;
};

AttentionHook tap(Arena& arena, std::vector<Tapped>& taps) {
  return [&](const AttentionCall& call) {
    std::int64_t longest = 0;
    for (const Segment& s : call.keys.spans) longest = std::max<std::int64_t>(longest, s.length);
    taps.push_back({call.site, arena.tensor({call.queries.rows(), call.heads, longest}, DType::f64),
                    call.queries, call.keys});
    return AttentionInputs{.weights = taps.back().weights};
  };
}

std::vector<double> features(const Transformer& model, const Batch& batch, const AttentionHook* hook) {
  Workspace w;
  Tape tape(w.exec, false);
  const Context context{.tape = tape, .parameters = model.parameters(), .attention = hook};
  return values(
      model.decode(context, batch.target, model.encode(context, batch.source), batch.source.segments)
          .value());
}

TEST(AttentionHook, IsAskedAtEveryAttentionAndChangesNothingWhenItOnlyTaps) {
  ModelConfig config = tiny_config();
  config.decoder_layers = 2;
  const Transformer model = tiny_model(config);
  const Batch batch(pairs);
  Arena arena;
  std::vector<Tapped> taps;
  const AttentionHook hook = tap(arena, taps);
  EXPECT_EQ(features(model, batch, &hook), features(model, batch, nullptr));
  using Kind = AttentionKind;
  const std::vector<AttentionSite> expected{{Kind::encoder, 0}, {Kind::encoder, 1}, {Kind::decoder, 0},
                                            {Kind::cross, 0},   {Kind::decoder, 1}, {Kind::cross, 1}};
  std::vector<AttentionSite> sites;
  for (const Tapped& t : taps) sites.push_back(t.site);
  EXPECT_EQ(sites, expected);
}

TEST(AttentionHook, WeightsOfEverySentenceSumToOneOverWhatItMaySee) {
  const Transformer model = tiny_model(tiny_config());
  const Batch batch(pairs);
  Arena arena;
  std::vector<Tapped> taps;
  const AttentionHook hook = tap(arena, taps);
  features(model, batch, &hook);
  for (const Tapped& t : taps) {
    const Shape& shape = t.weights.shape;
    for (std::int64_t s = 0; s < t.queries.count(); ++s)
      for (std::int64_t i = 0; i < t.queries[s].length; ++i)
        for (std::int64_t head = 0; head < shape[1]; ++head) {
          const double* row =
              t.weights.as<double>() + ((t.queries[s].begin + i) * shape[1] + head) * shape[2];
          const std::int64_t seen = t.site.kind == AttentionKind::decoder ? i + 1 : t.keys[s].length;
          double sum = 0;
          for (std::int64_t k = 0; k < shape[2]; ++k) {
            EXPECT_EQ(row[k] > 0, k < seen) << name(t.site.kind) << " query " << i << " key " << k;
            sum += row[k];
          }
          EXPECT_NEAR(sum, 1, 1e-12);
        }
  }
}

/// The definition: softmax(x W^Q (x W^K)ᵀ/√d_k) of each head, without biases.
TEST(AttentionHook, WeightsAreThoseOfTheEquation) {
  constexpr std::int64_t rows = 4, d = 6, heads = 2, head_dim = 3;
  ParameterStore store;
  const MultiHeadAttention layer(
      store.root(),
      AttentionDimensions{
          .d_model = d, .heads = heads, .head_dim = head_dim, .value_dim = head_dim, .bias = false},
      {AttentionKind::decoder, 3});
  store.allocate(DType::f64);
  store.initialise(1);
  Workspace w;
  const Tensor x = random_tensor(w.activations, {rows, d}, DType::f64, 2);
  const std::vector<Segment> sentence{{0, rows}};
  std::vector<Tapped> taps;
  const AttentionHook hook = tap(w.activations, taps);
  Tape tape(w.exec, false);
  layer.self({.tape = tape, .parameters = store, .attention = &hook}, tape.leaf(x), {sentence, 0}, false);
  ASSERT_EQ(taps.size(), 1u);
  EXPECT_EQ(taps[0].site, (AttentionSite{AttentionKind::decoder, 3}));
  const double *input = x.as<double>(), *query = store.value(store.at("query/weight")).as<double>(),
               *key = store.value(store.at("key/weight")).as<double>();
  const auto project = [&](const double* weight, std::int64_t row, std::int64_t feature) {
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c) sum += weight[feature * d + c] * input[row * d + c];
    return sum;
  };
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t i = 0; i < rows; ++i) {
      std::vector<double> expected(rows);
      double sum = 0;
      for (std::int64_t k = 0; k < rows; ++k) {
        double score = 0;
        for (std::int64_t f = head * head_dim; f < (head + 1) * head_dim; ++f)
          score += project(query, i, f) * project(key, k, f);
        sum += expected[static_cast<std::size_t>(k)] = std::exp(score / std::sqrt(double{head_dim}));
      }
      for (std::int64_t k = 0; k < rows; ++k)
        EXPECT_NEAR(taps[0].weights.as<double>()[(i * heads + head) * rows + k],
                    expected[static_cast<std::size_t>(k)] / sum, 1e-12);
    }
}

/// Attention of random rows over themselves, and what a hook makes of it.
struct OneLayer {
  static constexpr std::int64_t rows = 5, d = 6, heads = 2, value_dim = 4;
  Workspace w;
  ParameterStore store;
  MultiHeadAttention layer;
  std::vector<Segment> sentences{{0, 3}, {3, 2}};
  Tensor x;

  OneLayer()
      : layer(store.root(),
              AttentionDimensions{.d_model = d, .heads = heads, .head_dim = 3, .value_dim = value_dim}) {
    store.allocate(DType::f64);
    store.initialise(1);
    x = random_tensor(w.activations, {rows, d}, DType::f64, 2);
  }
  Var run(Tape& tape, const AttentionHook& hook) {
    return layer.self({.tape = tape, .parameters = store, .attention = &hook}, tape.leaf(x), {sentences, 0},
                      true);
  }
  /// The heads' outputs before W^O, and the layer's.
  std::pair<std::vector<double>, std::vector<double>> run(
      const std::function<AttentionInputs(Tape&)>& inputs) {
    Tape tape(w.exec, false);
    std::vector<double> tapped;
    const AttentionHook hook = [&](const AttentionCall& call) {
      EXPECT_EQ(call.value_dim, value_dim);
      AttentionInputs result = inputs(call.tape);
      result.observe = [&](const AttentionFlow& flow) {
        EXPECT_EQ(flow.query.shape(), (Shape{rows, heads * 3}));
        EXPECT_EQ(flow.key.shape(), (Shape{rows, heads * 3}));
        EXPECT_EQ(flow.value.shape(), (Shape{rows, heads * value_dim}));
        tapped = values(flow.output.value());
      };
      return result;
    };
    const std::vector<double> y = values(run(tape, hook).value());
    return {tapped, y};
  }
  Tensor tensor(const Shape& shape, const std::vector<double>& numbers) {
    const Tensor t = w.activations.tensor(shape, DType::f64);
    std::copy(numbers.begin(), numbers.end(), t.as<double>());
    return t;
  }
};

TEST(AttentionHook, GatesMixEachHeadWithItsReplacementBeforeTheOutputProjection) {
  OneLayer one;
  const auto plain = one.run([](Tape&) { return AttentionInputs{}; });
  const Tensor gates = one.tensor({2, 2}, {0, 1, 0.25, 0}),
               replacement = random_tensor(one.w.activations, {1, 8}, DType::f64, 9);
  const auto gated = one.run([&](Tape& tape) {
    return AttentionInputs{.gates = tape.leaf(gates), .replacement = tape.leaf(replacement)};
  });
  const Tensor &weight = one.store.value(one.store.at("output/weight")),
               &bias = one.store.value(one.store.at("output/bias"));
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t c = 0; c < 8; ++c) {
      const double gate = gates.as<double>()[(row < 3 ? 0 : 2) + c / 4];
      EXPECT_NEAR(gated.first[row * 8 + c],
                  gate * plain.first[row * 8 + c] + (1 - gate) * replacement.as<double>()[c], 1e-12);
    }
    for (std::size_t o = 0; o < 6; ++o) {
      double sum = bias.as<double>()[o];
      for (std::size_t c = 0; c < 8; ++c) sum += weight.as<double>()[o * 8 + c] * gated.first[row * 8 + c];
      EXPECT_NEAR(gated.second[row * 6 + o], sum, 1e-12);
    }
  }
}

TEST(AttentionHook, AScaleOfZeroMakesAHeadUniformOverWhatItMaySee) {
  OneLayer one;
  const Tensor weights = one.w.activations.tensor({5, 2, 3}, DType::f64), scale = one.tensor({2}, {0, 1});
  one.run([&](Tape&) { return AttentionInputs{.weights = weights, .logit_scale = scale}; });
  const auto row = [&](int query, int head) {
    const double* w = weights.as<double>() + (query * 2 + head) * 3;
    return std::vector<double>(w, w + 3);
  };
  expect_near(row(0, 0), {1, 0, 0}, 1e-12);
  expect_near(row(2, 0), {1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-12);
  expect_near(row(4, 0), {0.5, 0.5, 0}, 1e-12);
  EXPECT_GT(std::abs(row(2, 1)[0] - row(2, 1)[1]), 1e-5);
}

TEST(AttentionHook, GatesAndReplacementHaveGradients) {
  OneLayer one;
  const Tensor gates = one.tensor({2, 2}, {0.5, 1, 0.25, 0}),
               replacement = random_tensor(one.w.activations, {5, 8}, DType::f64, 9);
  check_gradients(
      [&](Tape& tape, const std::vector<Var>& in) {
        return one.run(tape, [&](const AttentionCall&) {
          return AttentionInputs{.gates = in[0], .replacement = in[1]};
        });
      },
      {gates, replacement});
}

}  // namespace
}  // namespace polyhead::nn
