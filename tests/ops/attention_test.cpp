#include "polyhead/ops/attention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "polyhead/kernels/random.h"
#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;
using ::testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// An attention and its inputs: q, k, v, gates, replacement.
struct Case {
  Workspace room;
  std::vector<Segment> queries, keys;
  MultiHeadAttention op;
  std::vector<Tensor> in = std::vector<Tensor>(5);
  std::int64_t query_rows = 0, key_rows = 0, key_dim = 0, value_dim = 0;
  DType dtype;

  Case(std::vector<Segment> query_segments, std::vector<Segment> key_segments, std::int64_t heads,
       std::int64_t kv_heads, std::int64_t d_k, std::int64_t d_v, DType type = DType::f64)
      : queries(std::move(query_segments)),
        keys(std::move(key_segments)),
        key_dim(d_k),
        value_dim(d_v),
        dtype(type) {
    op.heads = heads;
    op.kv_heads = kv_heads;
    op.query_segments = {queries, 3};
    op.key_segments = {keys, 3};
    for (const Segment& s : queries) query_rows = std::max<std::int64_t>(query_rows, s.begin + s.length);
    for (const Segment& s : keys) key_rows = std::max<std::int64_t>(key_rows, s.begin + s.length);
    in[0] = random({query_rows, heads * d_k}, 1);
    in[1] = random({key_rows, kv_heads * d_k}, 2);
    in[2] = random({key_rows, kv_heads * d_v}, 3);
  }
  Tensor random(const Shape& shape, std::uint64_t seed) {
    return random_tensor(room.activations, shape, dtype, seed);
  }
  std::int64_t longest() const {
    std::int64_t most = 0;
    for (const Segment& s : keys) most = std::max<std::int64_t>(most, s.length);
    return most;
  }
  void add_gates(std::int64_t rows) { in[3] = random({rows, op.heads}, 4); }
  void add_replacement(std::int64_t rows) { in[4] = random({rows, op.heads * value_dim}, 5); }
  /// Forbids about a third of the positions, and all of query 1's.
  void add_mask() {
    op.mask = random({query_rows, longest()}, 6);
    dispatch(dtype, [&]<class T>() {
      T* x = op.mask.as<T>();
      for (std::int64_t i = 0; i < op.mask.size(); ++i)
        if (i / longest() == 1 || x[i] < T(-0.3)) x[i] = -std::numeric_limits<T>::infinity();
    });
  }
  void add_logit_scale() { op.logit_scale = random({op.heads}, 7); }
  void add_tap() { op.weights = room.activations.tensor({query_rows, op.heads, longest()}, dtype); }
  Function function() const { return function_of<5>(op); }
  std::vector<double> y(bool training = false) const { return run(function(), in, training).y; }
  Result result(bool training = false) const { return run(function(), in, training); }
};

struct Expected {
  std::vector<double> y, weights;
};

/// The equations of the contract, one element at a time.
Expected naive(const Case& c, bool training = false) {
  const MultiHeadAttention& op = c.op;
  const std::int64_t h = op.heads, longest = c.longest();
  std::vector<std::vector<double>> in;
  for (const Tensor& t : c.in) in.push_back(t ? values(t) : std::vector<double>{});
  const auto at = [](const std::vector<double>& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
  const std::vector<double> mask = op.mask ? values(op.mask) : std::vector<double>{};
  const kernels::DropoutRate rate(training ? op.dropout : 0);
  Expected out{std::vector<double>(static_cast<std::size_t>(c.query_rows * h * c.value_dim)),
               std::vector<double>(static_cast<std::size_t>(c.query_rows * h * longest))};
  for (std::int64_t s = 0; s < op.query_segments.count(); ++s)
    for (std::int64_t a = 0; a < h; ++a)
      for (std::int64_t i = 0; i < op.query_segments[s].length; ++i) {
        const std::int64_t n = op.query_segments[s].length, m = op.key_segments[s].length;
        const std::int64_t row = op.query_segments[s].begin + i, kv = a * op.kv_heads / h;
        const std::int64_t seen = op.causal ? std::clamp<std::int64_t>(i + m - n + 1, 0, m) : m;
        std::vector<std::uint16_t> bits(static_cast<std::size_t>(m));
        kernels::random_bits(RngKey{7}.fold(op.site), static_cast<std::uint32_t>(op.query_segments.first + s),
                             static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(a), bits);
        std::vector<double> w(static_cast<std::size_t>(m));
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < c.key_dim; ++d)
            score += at(in[0], (row * h + a) * c.key_dim + d) *
                     at(in[1], ((op.key_segments[s].begin + j) * op.kv_heads + kv) * c.key_dim + d);
          score *= op.scale == 0 ? 1 / std::sqrt(static_cast<double>(c.key_dim)) : op.scale;
          if (op.logit_scale) score *= at(values(op.logit_scale), a);
          if (op.mask) score += at(mask, row * longest + j);
          sum += w[static_cast<std::size_t>(j)] = std::exp(score);
        }
        for (std::int64_t j = 0; j < m; ++j) {
          double& weight = w[static_cast<std::size_t>(j)];
          weight = sum == 0 ? 0 : weight / sum;
          out.weights[static_cast<std::size_t>((row * h + a) * longest + j)] = weight;
          if (training) weight *= bits[static_cast<std::size_t>(j)] >= rate.threshold ? rate.scale : 0;
        }
        const std::int64_t gate_row = c.in[3] && c.in[3].rows() > 1 ? s : 0;
        const double gate = c.in[3] ? at(in[3], gate_row * h + a) : 1;
        for (std::int64_t d = 0; d < c.value_dim; ++d) {
          double head = 0;
          for (std::int64_t j = 0; j < m; ++j)
            head += w[static_cast<std::size_t>(j)] *
                    at(in[2], ((op.key_segments[s].begin + j) * op.kv_heads + kv) * c.value_dim + d);
          const std::int64_t other = c.in[4] && c.in[4].rows() > 1 ? row : 0;
          const double replacement = c.in[4] ? at(in[4], (other * h + a) * c.value_dim + d) : 0;
          out.y[static_cast<std::size_t>((row * h + a) * c.value_dim + d)] =
              gate * head + (1 - gate) * replacement;
        }
      }
  return out;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

/// Values, tapped weights and gradients of a case.
void check(Case& c, bool training = false) {
  check_gradients(c.function(), c.in, training);
  c.add_tap();
  const Expected expected = naive(c, training);
  expect_near(c.y(training), expected.y, 1e-12);
  expect_near(values(c.op.weights), expected.weights, 1e-12);
}

const std::vector<Segment> three = {{0, 5}, {5, 1}, {6, 11}}, small = {{0, 3}, {3, 1}, {4, 5}};

TEST(Attention, Self) {
  Case c(small, small, 2, 2, 3, 5);
  check(c);
}

TEST(Attention, Causal) {
  Case c(three, three, 2, 2, 3, 5);
  c.op.causal = true;
  check(c);
}

TEST(Attention, CrossWithOtherLengthsGapsAndSharedKeys) {
  Case c({{1, 4}, {5, 2}, {9, 3}, {12, 0}, {12, 2}}, {{0, 7}, {0, 7}, {10, 1}, {11, 4}, {15, 0}}, 2, 2, 3, 2);
  check(c);
  for (const std::size_t row : {0U, 7U, 8U, 12U, 13U})  // outside every sentence, or without a key
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(c.y()[row * 4 + i], 0);
}

TEST(Attention, CausalWithMoreOrFewerKeysThanQueries) {
  Case c({{0, 3}, {3, 6}, {9, 12}}, {{0, 9}, {9, 4}, {13, 20}}, 1, 1, 4, 3);
  c.op.causal = true;
  check(c);
}

TEST(Attention, GroupedQueries) {
  Case c(small, small, 4, 2, 2, 3);
  check(c);
}

TEST(Attention, Mask) {
  Case c(small, small, 2, 2, 3, 2);
  c.add_mask();
  check(c);
}

TEST(Attention, MaskAndCausal) {
  Case c(three, three, 2, 1, 3, 2);
  c.add_mask();
  c.op.causal = true;
  check(c);
}

TEST(Attention, Dropout) {
  Case c(small, small, 2, 2, 3, 2);
  c.op.dropout = 0.4;
  c.op.site = 17;
  c.add_gates(3);
  EXPECT_NE(c.y(true), c.y(false));
  check(c, true);
}

TEST(Attention, GatesAndReplacementOfAllSentences) {
  Case c(small, small, 2, 2, 3, 2);
  c.add_gates(1);
  c.add_replacement(1);
  check(c);
}

TEST(Attention, GatesOfEverySentenceAndReplacementOfEveryRow) {
  Case c(small, small, 2, 1, 3, 2);
  c.add_gates(3);
  c.add_replacement(9);
  c.op.causal = true;
  check(c);
}

TEST(Attention, LogitScaleAndScale) {
  Case c(small, small, 2, 2, 3, 2);
  c.add_logit_scale();
  c.op.scale = 0.7;
  check(c);
}

TEST(Attention, Long) {
  Case c({{0, 66}}, {{5, 258}}, 1, 1, 1, 1);
  c.add_gates(1);
  c.add_replacement(1);
  check(c);
}

TEST(Attention, LongCausalMaskedAndDropped) {
  Case c({{0, 66}, {66, 2}}, {{0, 261}, {261, 3}}, 2, 1, 1, 1);
  c.add_mask();
  c.add_gates(2);
  c.op.causal = true;
  c.op.dropout = 0.3;
  check(c, true);
}

TEST(Attention, LongHeadsOfWorkingSizes) {
  for (const bool training : {false, true}) {
    Case c({{0, 280}, {280, 130}}, {{0, 280}, {280, 400}}, 4, 2, 32, 24);
    c.op.causal = training;
    c.op.dropout = 0.1;
    c.add_mask();
    c.add_tap();
    const Expected expected = naive(c, training);
    expect_near(c.y(training), expected.y, 1e-12);
    expect_near(values(c.op.weights), expected.weights, 1e-12);
  }
}

TEST(Attention, ShortAndLongAgree) {
  // 44 forbidden keys turn the first case's sentence into a long one.
  const std::int64_t n = 250, slack = 44;
  Case kept({{0, n}}, {{0, n}}, 2, 2, 8, 8), recomputed({{0, n}}, {{0, n + slack}}, 2, 2, 8, 8);
  for (const std::size_t i : {1U, 2U}) copy(kept.in[i], recomputed.in[i].slice_rows(0, n));
  copy(kept.in[0], recomputed.in[0]);
  recomputed.op.mask = recomputed.room.activations.zeros({n, n + slack}, DType::f64);
  for (std::int64_t i = 0; i < n; ++i)
    std::fill_n(recomputed.op.mask.as<double>() + i * (n + slack) + n, slack, -infinity);
  const Result a = kept.result(), b = recomputed.result();
  expect_near(a.y, b.y, 1e-13);
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<double> first = b.gradients[k];
    first.resize(a.gradients[k].size());
    expect_near(a.gradients[k], first, 1e-13);
  }
}

TEST(Attention, SinglePrecisionAgreesWithDouble) {
  for (const std::int64_t n : {25, 300}) {
    const std::vector<Segment> one = {{0, static_cast<std::int32_t>(n)}};
    Case single(one, one, 4, 4, 32, 32, DType::f32), twice(one, one, 4, 4, 32, 32);
    for (Case* c : {&single, &twice}) {
      c->add_gates(1);
      c->op.causal = true;
      c->op.dropout = 0.2;
    }
    const Result a = single.result(true), b = twice.result(true);
    expect_near(a.y, b.y, 1e-6);
    for (std::size_t k = 0; k < 4; ++k) expect_near(a.gradients[k], b.gradients[k], k == 3 ? 1e-3 : 1e-5);
  }
}

TEST(Attention, SameBitsOnEveryThread) {
  Case c({{0, 25}, {25, 270}}, {{0, 25}, {25, 270}}, 2, 2, 16, 8, DType::f32);
  c.op.dropout = 0.1;
  c.add_gates(2);
  expect_thread_invariant(c.function(), c.in, true);
}

TEST(Attention, SentencesDoNotDependOnTheirBatch) {
  Case all(three, three, 2, 2, 16, 16, DType::f32);
  all.op.causal = true;
  all.op.dropout = 0.2;
  Case last({{0, 11}}, {{0, 11}}, 2, 2, 16, 16, DType::f32);
  last.op.causal = true;
  last.op.dropout = 0.2;
  last.op.query_segments.first += 2;
  for (std::size_t i = 0; i < 3; ++i) copy(all.in[i].slice_rows(6, 11), last.in[i]);
  const std::vector<double> whole = all.y(true);
  EXPECT_EQ(std::vector<double>(whole.begin() + 6 * 32, whole.end()), last.y(true));
}

/// New rows of queries against a cache with slack, as many at a time as `rows` says, give the full pass.
void expect_cached_decoding_agrees(std::int32_t n, std::int32_t rows) {
  Case full({{0, n}}, {{0, n}}, 2, 2, 16, 8, DType::f32);
  full.op.causal = true;
  const std::vector<double> y = full.y();
  for (std::int32_t i = 0; i + rows <= n; i += rows) {
    Case step({{0, rows}}, {{4, i + rows}}, 2, 2, 16, 8, DType::f32);
    step.op.causal = true;
    copy(full.in[0].slice_rows(i, rows), step.in[0]);
    for (const std::size_t k : {1U, 2U})
      copy(full.in[k].slice_rows(0, i + rows), step.in[k].slice_rows(4, i + rows));
    expect_near(step.y(), std::vector<double>(y.begin() + i * 16, y.begin() + (i + rows) * 16), 1e-6);
  }
}

TEST(Attention, CachedDecodingAgreesWithTheFullPass) {
  expect_cached_decoding_agrees(40, 1);
  expect_cached_decoding_agrees(40, 5);
  expect_cached_decoding_agrees(263, 1);
}

TEST(Attention, WorkedExample) {
  // "The cat sat", the query is that of "cat"; d_model 4, two heads of 2 features.
  Case c({{0, 1}}, {{0, 3}}, 2, 2, 2, 2);
  const auto set = [](const Tensor& t, const std::vector<double>& x) {
    std::copy(x.begin(), x.end(), t.as<double>());
  };
  set(c.in[0], {0, 1, 1, -1});
  set(c.in[1], {1, 0, 1, 1, 0, 1, 2, 0, 1, 1, 0, 1});
  set(c.in[2], {1, 0, 0, 1, 0, 1, 1, 0, 2, 2, 1, 1});
  c.add_tap();
  expect_near(c.y(), {1.000, 1.203, 0.822, 0.266}, 6e-4);
  expect_near(values(c.op.weights), {0.198, 0.401, 0.401, 0.178, 0.734, 0.088}, 6e-4);
}

TEST(Attention, ForbiddenPositionsHaveNoWeightAtAll) {
  Case c(three, three, 2, 2, 3, 2);
  c.add_mask();
  c.add_tap();
  (void)c.y();
  const std::vector<double> mask = values(c.op.mask), weights = values(c.op.weights);
  const std::size_t longest = 11;
  for (std::size_t row = 0; row < 17; ++row)
    for (std::size_t a = 0; a < 2; ++a)
      for (std::size_t j = 0; j < longest; ++j)
        if (mask[row * longest + j] == -infinity) {
          EXPECT_EQ(weights[(row * 2 + a) * longest + j], 0);
        }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(c.y()[4 + i], 0);  // row 1 may look nowhere
}

TEST(Attention, OneHeadIsSingleHeadAttention) {
  Case c({{0, 6}}, {{0, 6}}, 1, 1, 4, 4);
  const std::vector<double> q = values(c.in[0]), k = values(c.in[1]), v = values(c.in[2]);
  std::vector<double> y(24);
  for (std::size_t i = 0; i < 6; ++i) {
    double weights[6], sum = 0;
    for (std::size_t j = 0; j < 6; ++j)
      sum += weights[j] = std::exp(std::inner_product(q.begin() + static_cast<std::ptrdiff_t>(4 * i),
                                                      q.begin() + static_cast<std::ptrdiff_t>(4 * i + 4),
                                                      k.begin() + static_cast<std::ptrdiff_t>(4 * j), 0.0) /
                                   2);
    for (std::size_t j = 0; j < 6; ++j)
      for (std::size_t d = 0; d < 4; ++d) y[4 * i + d] += weights[j] / sum * v[4 * j + d];
  }
  expect_near(c.y(), y, 1e-14);
}

TEST(Attention, TheOrderOfKeysDoesNotMatter) {
  Case c({{0, 6}}, {{0, 20}}, 2, 2, 4, 4);
  const std::vector<double> y = c.y();
  for (const std::size_t k : {1U, 2U})
    for (std::int64_t i = 0; i < 10; ++i)
      std::swap_ranges(c.in[k].as<double>() + i * 8, c.in[k].as<double>() + i * 8 + 8,
                       c.in[k].as<double>() + (19 - i) * 8);
  expect_near(c.y(), y, 1e-14);
}

TEST(Attention, HeadsPartitionTheFeatures) {
  const std::int64_t heads = 3, dim = 4;
  for (std::int64_t a = 0; a < heads; ++a) {
    Case c(three, three, heads, heads, dim, dim);
    const std::vector<double> before = c.y();
    for (std::size_t k = 0; k < 3; ++k)
      for (std::int64_t row = 0; row < 17; ++row)
        for (std::int64_t d = 0; d < dim; ++d) c.in[k].as<double>()[row * heads * dim + a * dim + d] += 0.5;
    const std::vector<double> after = c.y();
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(before[i] == after[i], static_cast<std::int64_t>(i) / dim % heads != a) << i;
  }
}

TEST(Attention, GateZeroGivesTheReplacement) {
  Case c(three, three, 2, 2, 4, 4);
  c.add_gates(1);
  c.add_replacement(17);
  fill_zero(c.in[3]);
  EXPECT_EQ(c.y(), values(c.in[4]));
}

TEST(Attention, LogitScaleZeroIsUniform) {
  Case c({{0, 4}}, {{0, 5}}, 2, 2, 4, 4);
  c.op.logit_scale = c.room.activations.zeros({2}, DType::f64);
  c.add_tap();
  (void)c.y();
  expect_near(values(c.op.weights), std::vector<double>(40, 0.2), 1e-15);
}

TEST(Attention, NaNStaysVisible) {
  for (const std::int32_t n : {9, 300}) {
    Case c({{0, n}}, {{0, n}}, 1, 1, 4, 4, DType::f32);
    c.in[1].as<float>()[4 * 5] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(c.y()[0]));
    c.op.causal = true;
    EXPECT_FALSE(std::isnan(c.y()[0]));
    EXPECT_TRUE(std::isnan(c.y()[4 * 5]));
  }
}

std::string shape_error(const Case& c) {
  return error_of([&] { (void)c.op.shape(c.in[0], c.in[1], c.in[2], c.in[3], c.in[4]); });
}

TEST(Attention, ErrorsOfExtents) {
  Case c(three, three, 2, 2, 3, 2);
  EXPECT_EQ(c.op.shape(c.in[0], c.in[1], c.in[2], {}, {}), (Shape{17, 4}));
  const auto with = [&](std::size_t i, const Tensor& t) {
    const Tensor kept = std::exchange(c.in[i], t);
    const std::string message = shape_error(c);
    c.in[i] = kept;
    return message;
  };
  EXPECT_THAT(with(0, c.random({17}, 1)),
              HasSubstr("attention: q [17], k [17, 6] and v [17, 4], expected matrices"));
  EXPECT_THAT(with(0, c.random({17, 7}, 1)), HasSubstr("attention: q [17, 7], expected columns for 2 heads"));
  EXPECT_THAT(with(1, c.random({17, 4}, 1)),
              HasSubstr("attention: k [17, 4], expected 6 columns: 2 heads of 3"));
  EXPECT_THAT(with(2, c.random({17, 3}, 1)), HasSubstr("attention: v [17, 3], expected columns for 2 heads"));
  EXPECT_THAT(with(2, c.random({18, 4}, 1)),
              HasSubstr("attention: k [17, 6] and v [18, 4], expected as many rows"));
  EXPECT_THAT(with(3, c.random({2, 2}, 1)), HasSubstr("attention: gates [2, 2], expected [1, 2] or [3, 2]"));
  EXPECT_THAT(with(4, c.random({2, 4}, 1)),
              HasSubstr("attention: replacement [2, 4], expected [1, 4] or [17, 4]"));
  EXPECT_THAT(with(1, random_tensor(c.room.activations, {17, 6}, DType::f32, 1)),
              HasSubstr("attention: a tensor of f32 beside q of f64, expected one type"));
  c.op.kv_heads = 3;
  EXPECT_THAT(shape_error(c),
              HasSubstr("attention: 2 heads and 3 heads of keys, expected a positive number that"));
}

TEST(Attention, ErrorsOfSettings) {
  Case c(three, three, 2, 2, 3, 2);
  const auto with = [&](auto&& change) {
    const MultiHeadAttention kept = c.op;
    change(c.op);
    const std::string message = shape_error(c);
    c.op = kept;
    return message;
  };
  EXPECT_THAT(with([](auto& op) { op.dropout = 1; }),
              HasSubstr("attention: dropout 1, expected at least 0 and below 1"));
  EXPECT_THAT(with([&](auto& op) {
                op.mask = c.random({17, 12}, 1);
              }),
              HasSubstr("attention: mask [17, 12], expected [17, 11]"));
  EXPECT_THAT(with([&](auto& op) { op.logit_scale = c.random({3}, 1); }),
              HasSubstr("attention: logit_scale [3], expected [2]"));
  EXPECT_THAT(with([&](auto& op) {
                op.weights = c.random({17, 2, 5}, 1);
              }),
              HasSubstr("attention: weights [17, 2, 5], expected [17, 2, 11]"));
}

TEST(Attention, ErrorsOfSegments) {
  Case c(three, three, 2, 2, 3, 2);
  c.keys = {{0, 5}, {5, 1}};
  c.op.key_segments = {c.keys, 3};
  EXPECT_THAT(shape_error(c), HasSubstr("attention: 3 sentences of queries and 2 of keys, expected as many"));
  c.keys = {{0, 5}, {5, 1}, {6, 12}};
  c.op.key_segments = {c.keys, 3};
  EXPECT_THAT(shape_error(c),
              HasSubstr("attention: keys of sentence 2 are rows 6 to 18, expected within rows 0 to 17"));
  c.queries[1] = {4, 1};
  EXPECT_THAT(
      shape_error(c),
      HasSubstr("attention: queries of sentence 1 are rows 4 to 5, expected within rows 5 to 17, in order"));
}

}  // namespace
}  // namespace polyhead::ops
