#include "polyhead/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models.h"

namespace polyhead::nn {
namespace {

using namespace polyhead::testing;

class Layers : public ::testing::Test {
 protected:
  void allocate() {
    store.allocate(DType::f64);
    store.initialise(4);
  }
  std::vector<double>& set(const std::string& path, std::vector<double> x) {
    std::copy(x.begin(), x.end(), store.value(store.at(path)).as<double>());
    return kept = std::move(x);
  }
  Var input(const Shape& shape, std::uint64_t seed = 1) {
    return tape.leaf(random_tensor(w.activations, shape, DType::f64, seed));
  }

  Workspace w;
  ParameterStore store;
  Tape tape{w.exec, false};
  Context context{tape, store};
  std::vector<Segment> spans{{0, 2}, {2, 1}};
  Segments segments{spans, 0};
  std::vector<double> kept;
};

TEST_F(Layers, LinearMultipliesFromOutToIn) {
  const Linear with(store.root() / "with", 2, 3, true), without(store.root() / "without", 2, 1, false);
  allocate();
  EXPECT_EQ(store.parameters().size(), 3u);
  set("with/weight", {1, 2, 3, 4, 5, 6});
  set("with/bias", {0.5, -20, 1});
  set("without/weight", {2, -1});
  const Tensor x = w.activations.tensor({1, 2}, DType::f64);
  x.as<double>()[0] = 1;
  x.as<double>()[1] = -2;
  const Var in = tape.leaf(x);
  EXPECT_EQ(values(with(context, in).value()), (std::vector<double>{-2.5, -25, -6}));
  EXPECT_EQ(values(with(context, in, ops::Activation::relu).value()), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(values(without(context, in).value()), (std::vector<double>{4}));
}

TEST_F(Layers, LayerNormGivesEachRowMeanZeroAndVarianceOne) {
  const LayerNorm norm(store.root(), 16);
  allocate();
  const std::vector<double> y = values(norm(context, input({3, 16})).value());
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      sum += y[16 * row + i];
      squares += y[16 * row + i] * y[16 * row + i];
    }
    EXPECT_NEAR(sum / 16, 0, 1e-12);
    EXPECT_NEAR(squares / 16, 1, 1e-3);
  }
}

TEST_F(Layers, FeedForwardIsTwoLinearLayers) {
  const FeedForward layer(store.root(), 4, 6, ops::Activation::gelu, 0, true);
  allocate();
  EXPECT_EQ(store.at("inner/weight").shape, (Shape{6, 4}));
  EXPECT_EQ(store.at("outer/weight").shape, (Shape{4, 6}));
  const Tensor x = input({3, 4}).value();
  const std::vector<double> w1 = values(store.value(store.at("inner/weight"))),
                            w2 = values(store.value(store.at("outer/weight"))),
                            b1 = set("inner/bias", {1, 2, 3, -1, -2, 0}),
                            b2 = set("outer/bias", {1, 0, 2, -1});
  std::vector<double> expected;
  for (std::size_t row = 0; row < 3; ++row) {
    std::vector<double> hidden = b1;
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j < 4; ++j) hidden[i] += w1[4 * i + j] * x.as<double>()[4 * row + j];
      hidden[i] *= 0.5 * std::erfc(-hidden[i] / std::sqrt(2.0));
    }
    for (std::size_t i = 0; i < 4; ++i) {
      expected.push_back(b2[i]);
      for (std::size_t j = 0; j < 6; ++j) expected.back() += w2[6 * i + j] * hidden[j];
    }
  }
  expect_near(values(layer(context, tape.leaf(x), segments).value()), expected, 1e-12);
}

TEST_F(Layers, ResidualNormalisesBeforeOrAfter) {
  const Residual pre(store.root() / "pre", 4, true, 0), post(store.root() / "post", 4, false, 0);
  const LayerNorm norm(store.root(), 4);
  allocate();
  const Var x = input({3, 4});
  const auto twice = [&](Var y) {
    const Tensor t = w.activations.tensor(y.shape(), DType::f64);
    for (std::int64_t i = 0; i < t.size(); ++i) t.as<double>()[i] = 2 * y.value().as<double>()[i];
    return tape.leaf(t);
  };
  const std::vector<double> before = values(x.value()), normed = values(norm(context, x).value());
  std::vector<double> expected;
  for (std::size_t i = 0; i < before.size(); ++i) expected.push_back(before[i] + 2 * normed[i]);
  EXPECT_EQ(values(pre(context, x, segments, twice).value()), expected);
  const Tensor three = w.activations.tensor({3, 4}, DType::f64);
  for (std::size_t i = 0; i < before.size(); ++i) three.as<double>()[i] = before[i] + 2 * before[i];
  EXPECT_EQ(values(post(context, x, segments, twice).value()),
            values(norm(context, tape.leaf(three)).value()));
}

TEST_F(Layers, ResidualDropoutLeavesTheConnectionItself) {
  const Residual pre(store.root(), 4, true, 0.5);
  allocate();
  w.exec.training = true;
  const Var x = input({3, 4}), one = input({3, 4}, 2);
  const std::vector<double> y = values(pre(context, x, segments, [&](Var) { return one; }).value());
  int dropped = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double connection = x.value().as<double>()[i], sublayer = one.value().as<double>()[i];
    dropped += y[i] == connection ? 1 : 0;
    EXPECT_TRUE(y[i] == connection || std::abs(y[i] - connection - 2 * sublayer) < 1e-12) << i;
  }
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, 12);
}

/// Both gradients of Σ y ⊙ dy of two encoder layers with dropout, the first of which may be checkpointed.
std::vector<double> encoder_gradients(bool checkpoint) {
  ModelConfig config = tiny_config();
  config.dropout = config.attention_dropout = config.activation_dropout = 0.3;
  ParameterStore store;
  const EncoderLayer first(store.root() / 0, config), second(store.root() / 1, config);
  store.allocate(DType::f32);
  store.initialise(1);
  const Slab gradients({store.slab_size()}, DType::f32);
  const std::vector<Segment> spans{{0, 4}, {4, 2}};
  Workspace w;
  w.exec.training = true;
  Tape tape(w.exec, true);
  const Tensor slab = gradients.tensor();
  const Segments segments{spans, 0};
  const auto block = [layer = &first, parameters = &store, slab, segments](Tape& t, Var x) {
    return (*layer)(Context{t, *parameters, slab}, x, segments);
  };
  const Var x = tape.variable(random_tensor(w.activations, {6, 8}, DType::f32, 2));
  const Var middle = checkpoint ? tape.checkpoint(block, x) : block(tape, x);
  const Var y = second(Context{tape, store, slab}, middle, segments);
  tape.backward(y, random_tensor(w.activations, {6, 8}, DType::f32, 3));
  std::vector<double> result = values(y.value());
  for (const Tensor& t : {x.grad(), slab}) {
    const std::vector<double> more = values(t);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

TEST(Checkpoint, AroundAnEncoderLayerGivesTheSameBitsWithDropout) {
  const std::vector<double> plain = encoder_gradients(false);
  EXPECT_EQ(encoder_gradients(true), plain);
  EXPECT_NE(plain, std::vector<double>(plain.size()));
}

TEST(Positions, InterleaveSineAndCosine) {
  const SinusoidalPositions positions({5, 4});
  const std::vector<double> table = values(positions.table(DType::f64));
  for (std::size_t p = 0; p < 5; ++p) {
    const auto x = static_cast<double>(p);
    expect_near({table.begin() + static_cast<std::ptrdiff_t>(4 * p),
                 table.begin() + static_cast<std::ptrdiff_t>(4 * p + 4)},
                {std::sin(x), std::cos(x), std::sin(x / 100), std::cos(x / 100)}, 1e-15);
  }
  expect_near(values(positions.table(DType::f32)), table, 1e-7);
}

}  // namespace
}  // namespace polyhead::nn
