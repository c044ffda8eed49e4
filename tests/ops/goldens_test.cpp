#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "polyhead/ops/attention.h"
#include "polyhead/ops/attention_overlap.h"
#include "polyhead/ops/cross_entropy.h"
#include "polyhead/ops/embedding.h"
#include "polyhead/ops/head_cosine.h"
#include "polyhead/ops/layer_norm.h"
#include "polyhead/ops/linear.h"
#include "polyhead/ops/softmax.h"
#include "support/check_op.h"
#include "support/golden.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

/// Ops against PyTorch's values and gradients, in f64 and f32.
class Goldens : public ::testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  double tolerance() const { return dtype() == DType::f64 ? 1e-12 : 1e-5; }
  Tensor read(const std::string& dataset) { return golden.tensor(arena, dataset, dtype()); }

  void expect_near(const Tensor& ours, const std::string& dataset) {
    const std::vector<double> a = values(ours), b = golden.values(dataset);
    ASSERT_EQ(a.size(), b.size()) << dataset;
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 2 * tolerance() * std::max(1.0, std::abs(b[i])))
          << dataset << ", element " << i;
      error += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
    EXPECT_LE(std::sqrt(error), tolerance() * std::sqrt(norm)) << dataset;
  }

  /// An op of the inputs `names` of a case; an empty name stands for an empty tensor.
  template <std::size_t N, class Op>
  void check(const std::string& group, const Op& op, const std::vector<std::string>& names) {
    Workspace w;
    Tape tape(w.exec, true);
    std::vector<Var> in;
    for (const std::string& input : names)
      in.push_back(input.empty() ? tape.leaf(Tensor{nullptr, {}, dtype()})
                                 : tape.variable(read(group + "/" + input)));
    const Var y = function_of<N>(op)(tape, in);
    expect_near(y.value(), group + "/y");
    tape.backward(y, read(group + "/dy"));
    for (std::size_t i = 0; i < N; ++i)
      if (!names[i].empty()) expect_near(in[i].grad(), group + "/gradients/" + names[i]);
  }

  Arena arena;
  Golden golden{"golden_ops.h5"};
};

TEST_P(Goldens, Embedding) {
  const Embedding op{golden.tensor(arena, "embedding/ids", DType::i32), golden.values("embedding/scale")[0]};
  check<1>("embedding", op, {"weight"});
}

TEST_P(Goldens, Linear) {
  check<3>("linear_none", Linear{Activation::none}, {"x", "weight", "bias"});
  check<3>("linear_relu", Linear{Activation::relu}, {"x", "weight", "bias"});
  check<3>("linear_gelu", Linear{Activation::gelu}, {"x", "weight", "bias"});
  check<3>("linear_swish", Linear{Activation::swish}, {"x", "weight", "bias"});
  check<3>("linear_without_bias", Linear{}, {"x", "weight", ""});
}

TEST_P(Goldens, LayerNorm) { check<3>("layer_norm", LayerNorm{}, {"x", "gamma", "beta"}); }

TEST_P(Goldens, Softmax) {
  check<1>("softmax", Softmax{}, {"x"});
  check<1>("log_softmax", Softmax{.log = true}, {"x"});
}

TEST_P(Goldens, ProjectedCrossEntropy) {
  for (const std::string group : {"cross_entropy", "cross_entropy_smoothed"}) {
    const Tensor token_loss = arena.tensor({6}, dtype());
    const ProjectedCrossEntropy op{.targets = golden.tensor(arena, group + "/targets", DType::i32),
                                   .label_smoothing = golden.values(group + "/label_smoothing")[0],
                                   .gradients = true,
                                   .token_loss = token_loss};
    check<3>(group, op, {"x", "weight", "bias"});
    expect_near(token_loss, group + "/token_loss");
  }
}

std::vector<Segment> segments(const std::vector<double>& lengths) {
  std::vector<Segment> result;
  std::int32_t begin = 0;
  for (const double length : lengths) {
    result.push_back({begin, static_cast<std::int32_t>(length)});
    begin += result.back().length;
  }
  return result;
}

TEST_P(Goldens, MultiHeadAttention) {
  for (const std::string group : {"attention_self", "attention_causal", "attention_causal_longer_keys",
                                  "attention_cross", "attention_mask", "attention_long"}) {
    const std::vector<Segment> queries = segments(golden.values(group + "/query_lengths")),
                               keys = segments(golden.values(group + "/key_lengths"));
    MultiHeadAttention op{.query_segments = {queries, 0}, .key_segments = {keys, 0}};
    op.heads = op.kv_heads = static_cast<std::int64_t>(golden.number(group, "heads"));
    op.causal = golden.number(group, "causal") != 0;
    if (golden.has(group + "/mask")) op.mask = read(group + "/mask");
    check<5>(group, op, {"q", "k", "v", "", ""});
  }
}

TEST_P(Goldens, HeadCosine) {
  const auto heads = static_cast<std::int64_t>(golden.number("head_cosine", "heads"));
  check<1>("head_cosine", HeadCosine{heads}, {"x"});
}

TEST_P(Goldens, AttentionOverlap) {
  for (const std::string group : {"attention_overlap_self", "attention_overlap_cross"}) {
    const std::vector<Segment> queries = segments(golden.values(group + "/query_lengths")),
                               keys = segments(golden.values(group + "/key_lengths"));
    const AttentionOverlap op{.heads = static_cast<std::int64_t>(golden.number(group, "heads")),
                              .query_segments = {queries, 0},
                              .key_segments = {keys, 0},
                              .causal = golden.number(group, "causal") != 0};
    check<2>(group, op, {"q", "k"});
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Goldens, ::testing::Values(DType::f64, DType::f32),
                         [](const auto& instance) { return name(instance.param); });

}  // namespace
}  // namespace polyhead::ops
