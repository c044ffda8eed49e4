#include "polyhead/nn/parameters.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "models.h"

namespace polyhead::nn {
namespace {

using namespace polyhead::testing;
using ::testing::ElementsAre;

std::vector<std::string> paths(const ParameterStore& store) {
  std::vector<std::string> result;
  for (const Parameter& p : store.parameters()) result.push_back(p.path);
  return result;
}

TEST(ParameterStore, PathsFollowTheScopes) {
  ParameterStore store;
  const Scope layer = store.root() / "encoder" / "layers" / 3;
  layer.declare("weight", {2, 3}, Init::zeros());
  store.root().declare("bias", {5}, Init::ones());
  EXPECT_THAT(paths(store), ElementsAre("encoder/layers/3/weight", "bias"));
  EXPECT_EQ(layer.path(), "encoder/layers/3");
  EXPECT_EQ(layer.site(), hash("encoder/layers/3"));
  EXPECT_EQ(store.at("bias").shape, (Shape{5}));
  EXPECT_EQ(store.count(), 11);
}

TEST(ParameterStore, ValuesAreAlignedAndDoNotOverlap) {
  ParameterStore store;
  store.root().declare("a", {3}, Init::ones());
  store.root().declare("b", {4, 5}, Init::ones());
  store.root().declare("c", {1}, Init::ones());
  store.allocate(DType::f32);
  store.initialise(1);
  std::int64_t end = 0;
  for (const Parameter& p : store.parameters()) {
    EXPECT_GE(p.offset, end);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store.value(p).data) % 64, 0u) << p.path;
    end = p.offset + p.size();
  }
  EXPECT_LE(end, store.slab_size());
  const std::vector<double> all = values(store.slab());
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0.0), 24);
}

TEST(ParameterStore, ErrorsSayWhatIsWrong) {
  ParameterStore store;
  EXPECT_EQ(error_of([&] { store.slab(); }), "parameters have no memory yet");
  store.root().declare("weight", {2, 3}, Init::zeros());
  EXPECT_EQ(error_of([&] {
              store.root().declare("weight", {2, 3}, Init::zeros());
            }),
            "parameter weight declared twice");
  EXPECT_EQ(error_of([&] { store.root().declare("bias", {2}, Init::xavier_uniform()); }),
            "parameter bias: xavier_uniform of shape [2], expected a matrix");
  EXPECT_EQ(error_of([&] { store.at("wieght"); }), "no parameter wieght");
  store.allocate(DType::f32);
  EXPECT_EQ(error_of([&] { store.root().declare("late", {2}, Init::zeros()); }),
            "parameter late declared after memory was allocated");
}

std::vector<double> initial(const std::vector<std::string>& names, const std::string& wanted,
                            std::uint64_t seed) {
  ParameterStore store;
  for (const std::string& name : names) store.root().declare(name, {4, 6}, Init::xavier_uniform());
  store.allocate(DType::f32);
  store.initialise(seed);
  return values(store.value(store.at(wanted)));
}

TEST(Initialisation, DependsOnSeedAndPathAlone) {
  const std::vector<double> expected = initial({"a", "b"}, "b", 1);
  EXPECT_EQ(initial({"b", "a"}, "b", 1), expected);
  EXPECT_EQ(initial({"c", "d", "b"}, "b", 1), expected);
  EXPECT_NE(initial({"a", "b"}, "b", 2), expected);
  EXPECT_NE(initial({"a", "b"}, "a", 1), expected);
}

TEST(Initialisation, GivesTheSameBitsForEveryNumberOfHeads) {
  const auto slab = [](int heads) {
    ModelConfig config = tiny_config();
    config.heads = heads;
    Transformer model(config, 10, 10);
    model.parameters().allocate(DType::f32);
    model.parameters().initialise(11);
    return values(model.parameters().slab());
  };
  const std::vector<double> one = slab(1);
  EXPECT_EQ(slab(2), one);
  EXPECT_EQ(slab(4), one);
  EXPECT_EQ(slab(8), one);
}

TEST(Initialisation, XavierUniformFillsItsBounds) {
  ParameterStore store;
  const Parameter& p = store.root().declare("weight", {60, 90}, Init::xavier_uniform());
  store.allocate(DType::f64);
  store.initialise(1);
  const double bound = std::sqrt(6.0 / 150);
  double low = 0, high = 0, sum = 0, squares = 0;
  for (const double x : values(store.value(p))) {
    low = std::min(low, x);
    high = std::max(high, x);
    sum += x;
    squares += x * x;
  }
  EXPECT_GE(low, -bound);
  EXPECT_LE(high, bound);
  EXPECT_LT(low, -0.99 * bound);
  EXPECT_GT(high, 0.99 * bound);
  EXPECT_NEAR(sum / 5400, 0, 0.03 * bound);
  EXPECT_NEAR(squares / 5400, bound * bound / 3, 0.03 * bound * bound);
}

TEST(Initialisation, EachProjectionIsAMatrixOfItsOwnAndNormsStartAtOne) {
  ModelConfig config = tiny_config();
  config.d_model = 32;
  Transformer model(config, 10, 10);
  ParameterStore& store = model.parameters();
  store.allocate(DType::f64);
  store.initialise(1);
  for (const Parameter& p : store.parameters()) {
    const std::vector<double> x = values(store.value(p));
    const auto [low, high] = std::minmax_element(x.begin(), x.end());
    if (p.path.ends_with("gamma")) {
      EXPECT_EQ(*low, 1) << p.path;
      EXPECT_EQ(*high, 1) << p.path;
    } else if (p.shape.rank() == 1) {
      EXPECT_EQ(*low, 0) << p.path;
      EXPECT_EQ(*high, 0) << p.path;
    } else if (!p.path.ends_with("embedding/weight")) {
      const double bound = std::sqrt(6.0 / static_cast<double>(p.shape[0] + p.shape[1]));
      EXPECT_LE(std::max(-*low, *high), bound) << p.path;
      EXPECT_GT(std::max(-*low, *high), 0.9 * bound) << p.path;
    }
  }
}

TEST(Initialisation, EmbeddingsAreNormalWithDeviationOneOverRootD) {
  ModelConfig config = tiny_config();
  config.d_model = 64;
  Transformer model(config, 500, 10);
  ParameterStore& store = model.parameters();
  store.allocate(DType::f64);
  store.initialise(1);
  double sum = 0, squares = 0, beyond_two = 0;
  const std::vector<double> x = values(store.value(store.at("encoder/embedding/weight")));
  for (const double e : x) {
    sum += e;
    squares += e * e;
    beyond_two += std::abs(e) > 2.0 / 8 ? 1 : 0;
  }
  const auto n = static_cast<double>(x.size());
  EXPECT_EQ(n, 32000);
  EXPECT_NEAR(sum / n, 0, 0.005);
  EXPECT_NEAR(std::sqrt(squares / n), 1.0 / 8, 0.003);
  EXPECT_NEAR(beyond_two / n, 0.0455, 0.006);
}

}  // namespace
}  // namespace polyhead::nn
