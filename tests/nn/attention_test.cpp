#include "polyhead/nn/attention/multi_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "models.h"

namespace polyhead::nn {
namespace {

using namespace polyhead::testing;

using Matrix = std::vector<std::vector<double>>;

Matrix matrix(const Tensor& t) {
  Matrix result(static_cast<std::size_t>(t.rows()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double* row = t.as<double>() + static_cast<std::int64_t>(i) * t.cols();
    result[i].assign(row, row + t.cols());
  }
  return result;
}

/// Rows begin … begin + count − 1 of W times x: the projection of one head.
Matrix project(const Matrix& x, const Matrix& weight, std::size_t begin, std::size_t count) {
  Matrix y;
  for (const auto& row : x) {
    y.emplace_back();
    for (std::size_t i = begin; i < begin + count; ++i)
      y.back().push_back(std::inner_product(row.begin(), row.end(), weight[i].begin(), 0.0));
  }
  return y;
}

/// softmax(Q Kᵀ/√d_k) V of one head and one sentence.
Matrix single_head(const Matrix& q, const Matrix& k, const Matrix& v) {
  Matrix y;
  for (const auto& query : q) {
    std::vector<double> out(v[0].size());
    double sum = 0;
    for (std::size_t j = 0; j < k.size(); ++j) {
      const double score = std::inner_product(query.begin(), query.end(), k[j].begin(), 0.0);
      const double weight = std::exp(score / std::sqrt(static_cast<double>(query.size())));
      sum += weight;
      for (std::size_t f = 0; f < out.size(); ++f) out[f] += weight * v[j][f];
    }
    for (double& f : out) f /= sum;
    y.push_back(out);
  }
  return y;
}

/// A layer without biases over one sentence of five rows, W^O = I where it is square.
class Attention : public ::testing::Test {
 protected:
  void make(std::int64_t d_model, std::int64_t heads, std::int64_t head_dim, std::int64_t value_dim) {
    layer.emplace(
        store.root(),
        AttentionDimensions{
            .d_model = d_model, .heads = heads, .head_dim = head_dim, .value_dim = value_dim, .bias = false});
    store.allocate(DType::f64);
    store.initialise(1);
    if (heads * value_dim == d_model) {
      const Tensor output = store.value(store.at("output/weight"));
      fill_zero(output);
      for (std::int64_t i = 0; i < d_model; ++i) output.as<double>()[i * d_model + i] = 1;
    }
    x = random_tensor(storage, {5, d_model}, DType::f64, 2);
  }
  Matrix weight(const std::string& name) const { return matrix(store.value(store.at(name + "/weight"))); }
  Matrix self(bool causal = false) {
    Workspace w;
    Tape tape(w.exec, false);
    return matrix(layer->self({tape, store}, tape.leaf(x), {sentence, 0}, causal).value());
  }
  /// Keys and values of `memory` for queries x.
  Matrix cross(const Tensor& memory) {
    Workspace w;
    Tape tape(w.exec, false);
    const Context context{tape, store};
    return matrix(layer
                      ->cross(context, tape.leaf(x), {sentence, 0},
                              layer->project(context, tape.leaf(memory)), {sentence, 0})
                      .value());
  }

  Arena storage;
  ParameterStore store;
  std::optional<MultiHeadAttention> layer;
  Tensor x;
  std::vector<Segment> sentence{{0, 5}};
};

void expect_near(const Matrix& a, const Matrix& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) nn::expect_near(a[i], b[i], 1e-12);
}

TEST_F(Attention, OneHeadWithIdentityOutputIsSingleHeadAttention) {
  make(6, 1, 6, 6);
  const Matrix rows = matrix(x);
  expect_near(self(), single_head(project(rows, weight("query"), 0, 6), project(rows, weight("key"), 0, 6),
                                  project(rows, weight("value"), 0, 6)));
}

TEST_F(Attention, HeadsAreSingleHeadsOverDisjointBlocksThatCoverAllFeatures) {
  make(6, 3, 2, 2);
  const Matrix rows = matrix(x), whole = self();
  for (std::size_t head = 0; head < 3; ++head) {
    const Matrix expected =
        single_head(project(rows, weight("query"), 2 * head, 2), project(rows, weight("key"), 2 * head, 2),
                    project(rows, weight("value"), 2 * head, 2));
    Matrix block;
    for (const auto& row : whole) block.push_back({row[2 * head], row[2 * head + 1]});
    expect_near(block, expected);
  }
}

TEST_F(Attention, ChangingOneHeadsProjectionsChangesItsFeaturesAlone) {
  make(8, 4, 2, 2);
  const Matrix before = self();
  for (const std::string name : {"query", "key", "value"}) {
    double* w = store.value(store.at(name + "/weight")).as<double>();
    const std::vector<double> kept(w, w + 64);
    for (int i = 0; i < 16; ++i) w[2 * 2 * 8 + i] += 0.5;  // rows 4 and 5: head 2
    const Matrix after = self();
    for (std::size_t row = 0; row < 5; ++row)
      for (std::size_t f = 0; f < 8; ++f)
        if (f / 2 == 2)
          EXPECT_NE(after[row][f], before[row][f]) << name;
        else
          EXPECT_EQ(after[row][f], before[row][f]) << name;
    std::copy(kept.begin(), kept.end(), w);
  }
}

TEST_F(Attention, HeadsNeedNotPartitionTheModelsFeatures) {
  make(6, 2, 5, 4);
  EXPECT_EQ(store.at("query/weight").shape, (Shape{10, 6}));
  EXPECT_EQ(store.at("key/weight").shape, (Shape{10, 6}));
  EXPECT_EQ(store.at("value/weight").shape, (Shape{8, 6}));
  EXPECT_EQ(store.at("output/weight").shape, (Shape{6, 8}));
  const Matrix rows = matrix(x);
  Matrix heads(5);
  for (std::size_t head = 0; head < 2; ++head) {
    const Matrix y =
        single_head(project(rows, weight("query"), 5 * head, 5), project(rows, weight("key"), 5 * head, 5),
                    project(rows, weight("value"), 4 * head, 4));
    for (std::size_t i = 0; i < 5; ++i) heads[i].insert(heads[i].end(), y[i].begin(), y[i].end());
  }
  expect_near(self(), project(heads, weight("output"), 0, 6));
}

TEST_F(Attention, PermutingTheMemoryChangesNothing) {
  make(6, 3, 2, 2);
  const Tensor memory = random_tensor(storage, {5, 6}, DType::f64, 3),
               permuted = storage.tensor({5, 6}, DType::f64);
  const std::int64_t order[] = {3, 0, 4, 1, 2};
  for (std::int64_t i = 0; i < 5; ++i) copy(memory.slice_rows(order[i], 1), permuted.slice_rows(i, 1));
  expect_near(cross(permuted), cross(memory));
}

TEST_F(Attention, CausalRowsDoNotSeeWhatFollows) {
  make(6, 3, 2, 2);
  const Matrix before = self(true);
  for (std::int64_t f = 0; f < 6; ++f) x.as<double>()[3 * 6 + f] += 1;
  const Matrix after = self(true);
  for (std::size_t row = 0; row < 5; ++row) EXPECT_EQ(after[row] == before[row], row < 3) << "row " << row;
}

}  // namespace
}  // namespace polyhead::nn
