#include "polyhead/ops/attention_overlap.h"

#include <gmock/gmock.h>

#include <limits>

#include "polyhead/ops/attention.h"
#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;
using ::testing::HasSubstr;

struct Case {
  Arena arena;
  std::vector<Segment> queries, keys;
  AttentionOverlap op;
  std::vector<Tensor> in;

  Case(std::vector<Segment> query_segments, std::vector<Segment> key_segments, std::int64_t heads,
       std::int64_t dim, bool causal, DType dtype = DType::f64)
      : queries(std::move(query_segments)), keys(std::move(key_segments)) {
    op = {heads, {queries, 0}, {keys, 0}, causal};
    in = {random_tensor(arena, {rows(queries), heads * dim}, dtype, 1),
          random_tensor(arena, {rows(keys), heads * dim}, dtype, 2)};
    for (const Tensor& t : in)  // weights far from uniform
      dispatch(dtype, [&]<class T>() {
        for (T& x : t.span<T>()) x *= 3;
      });
  }
  static std::int64_t rows(const std::vector<Segment>& segments) {
    std::int64_t most = 0;
    for (const Segment& s : segments) most = std::max<std::int64_t>(most, s.begin + s.length);
    return most;
  }
  Function function() const { return function_of<2>(op); }
  double y() const { return run(function(), in).y[0]; }
};

/// The equation of the contract over the weights that attention has.
double naive(const Case& c) {
  Workspace w;
  const DType dtype = c.in[0].dtype;
  std::int64_t longest = 0;
  for (const Segment& s : c.keys) longest = std::max<std::int64_t>(longest, s.length);
  MultiHeadAttention attention{.heads = c.op.heads,
                               .kv_heads = c.op.heads,
                               .query_segments = c.op.query_segments,
                               .key_segments = c.op.key_segments,
                               .causal = c.op.causal};
  attention.weights = w.activations.tensor({c.in[0].shape[0], c.op.heads, longest}, dtype);
  Tape tape(w.exec, false);
  const Var none = tape.leaf(Tensor{nullptr, {}, dtype}), k = tape.leaf(c.in[1]);
  tape.apply(attention, tape.leaf(c.in[0]), k, k, none, none);
  const std::vector<double> weights = values(attention.weights);
  const auto at = [&](std::int64_t row, std::int64_t head, std::int64_t key) {
    return weights[static_cast<std::size_t>((row * c.op.heads + head) * longest + key)];
  };
  double total = 0;
  for (std::int64_t row = 0; row < c.in[0].shape[0]; ++row)
    for (std::int64_t i = 0; i < c.op.heads; ++i)
      for (std::int64_t j = 0; j < c.op.heads; ++j)
        for (std::int64_t key = 0; key < longest; ++key) total += at(row, i, key) * at(row, j, key);
  return total / static_cast<double>(c.op.heads * c.op.heads);
}

void check(const Case& c) {
  EXPECT_NEAR(c.y(), naive(c), 1e-12 * std::max(1.0, c.y()));
  EXPECT_GT(c.y(), 0);
  check_gradients(c.function(), c.in);
}

TEST(AttentionOverlap, Self) { check({{{0, 5}, {5, 1}, {6, 3}}, {{0, 5}, {5, 1}, {6, 3}}, 3, 2, false}); }

TEST(AttentionOverlap, Causal) { check({{{0, 9}, {9, 1}, {10, 4}}, {{0, 9}, {9, 1}, {10, 4}}, 2, 3, true}); }

TEST(AttentionOverlap, CrossWithOtherLengthsAndGaps) {
  check(
      {{{1, 4}, {5, 2}, {9, 3}, {12, 0}, {12, 2}}, {{0, 7}, {0, 7}, {10, 1}, {11, 4}, {15, 0}}, 2, 3, false});
}

TEST(AttentionOverlap, CausalWithMoreOrFewerKeysThanQueries) {
  check({{{0, 3}, {3, 6}, {9, 12}}, {{0, 9}, {9, 4}, {13, 20}}, 2, 2, true});
}

TEST(AttentionOverlap, ManyBlocksOfQueries) {
  for (const bool causal : {false, true}) {
    check({{{0, 35}}, {{0, 35}}, 2, 1, causal});
    const Case large({{0, 100}, {100, 290}}, {{0, 70}, {70, 300}}, 4, 16, causal);
    EXPECT_NEAR(large.y(), naive(large), 1e-11 * large.y());
  }
}

TEST(AttentionOverlap, EqualHeadsOverlapAsMuchAsOneWithItself) {
  const std::vector<Segment> one{{0, 6}};
  const Case single(one, one, 1, 4, true);
  Case twice(one, one, 2, 4, true);
  for (std::size_t k = 0; k < 2; ++k)
    for (std::int64_t row = 0; row < 6; ++row)
      for (const std::int64_t head : {0, 1})
        std::copy_n(single.in[k].as<double>() + row * 4, 4, twice.in[k].as<double>() + (row * 2 + head) * 4);
  EXPECT_NEAR(twice.y(), single.y(), 1e-12);
}

TEST(AttentionOverlap, UniformHeadsOverlapInOnePartOfTheirKeys) {
  Case c({{0, 4}}, {{0, 5}}, 3, 2, false);
  fill_zero(c.in[0]);
  EXPECT_NEAR(c.y(), 4 * 1.0 / 5, 1e-12);
}

TEST(AttentionOverlap, HasTheSameBitsOnEveryThreadAndFollowsF64) {
  const std::vector<Segment> sentences{{0, 25}, {25, 45}};
  const Case single(sentences, sentences, 3, 8, true, DType::f32);
  expect_thread_invariant(single.function(), single.in);
  expect_address_invariant(single.function(), single.in);
  expect_f32_follows_f64(single.function(), {single.in[0].shape, single.in[1].shape}, 1e-5);
}

TEST(AttentionOverlap, NaNStaysVisible) {
  const Case c({{0, 9}}, {{0, 9}}, 2, 4, false, DType::f32);
  c.in[1].as<float>()[8 * 5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(c.y()));
}

TEST(AttentionOverlap, RefusesWhatDoesNotFit) {
  Arena arena;
  const auto tensor = [&](const Shape& shape, DType dtype = DType::f32) {
    return arena.tensor(shape, dtype);
  };
  const std::vector<Segment> four{{0, 4}}, five{{0, 5}};
  const auto error = [&](const Tensor& q, const Tensor& k, std::int64_t heads,
                         const std::vector<Segment>& keys) {
    return error_of([&] { (void)AttentionOverlap{heads, {four, 0}, {keys, 0}}.shape(q, k); });
  };
  EXPECT_EQ(error(tensor({4, 6}), tensor({4, 6}), 4, four),
            "attention overlap: q [4, 6], expected a matrix with columns for 4 heads");
  EXPECT_EQ(error(tensor({4, 6}), tensor({4, 9}), 3, four),
            "attention overlap: k [4, 9], expected 6 columns, as q has");
  EXPECT_EQ(error(tensor({4, 6}), tensor({4, 6}, DType::f64), 3, four),
            "attention overlap: k of f64 beside q of f32, expected one type");
  EXPECT_THAT(error(tensor({4, 6}), tensor({4, 6}), 3, five),
              HasSubstr("keys of sentence 0 are rows 0 to 5"));
}

}  // namespace
}  // namespace polyhead::ops
