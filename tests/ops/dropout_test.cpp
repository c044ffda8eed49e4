#include "polyhead/ops/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "polyhead/ops/elementwise.h"
#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

// Rows 1, 2, 3 and 5, 6 belong to sentences; rows 0, 4 and 7 to none.
constexpr Segment spans[] = {{1, 3}, {5, 2}};
const Segments sentences{spans, 4};
constexpr std::int64_t rows = 8;

/// The mask m/(1 − p) of Workspace's key, one Philox block at a time, as random.h and dropout.h describe it.
std::vector<double> mask(const Dropout& op, std::int64_t n, std::int64_t d) {
  const auto threshold = static_cast<std::uint32_t>(std::lround(op.p * 65536));
  const std::uint64_t key = RngKey{7}.fold(op.site).value;
  std::vector<double> m(static_cast<std::size_t>(n * d), 1.0);
  for (std::int64_t s = 0; s < op.segments.count(); ++s)
    for (std::int32_t t = 0; t < op.segments[s].length; ++t)
      for (std::int64_t i = 0; i < d; ++i) {
        const PhiloxBlock block = philox({static_cast<std::uint32_t>(i / 8), static_cast<std::uint32_t>(t),
                                          static_cast<std::uint32_t>(op.segments.first + s), 0},
                                         key);
        const std::uint32_t bits = block[static_cast<std::size_t>(i % 8 / 2)] >> (i % 2 * 16) & 0xFFFF;
        m[static_cast<std::size_t>((op.segments[s].begin + t) * d + i)] =
            bits >= threshold ? 65536.0 / (65536.0 - threshold) : 0;
      }
  return m;
}

TEST(Dropout, MultipliesByTheMaskOfItsCounters) {
  const Dropout op{0.3, hash("encoder/dropout"), sentences};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t d : {1, 8, 13, 64, 100, 128, 200}) {
      Arena arena;
      const Tensor x = random_tensor(arena, {rows, d}, dtype, 1),
                   dy = random_tensor(arena, {rows, d}, dtype, 99);
      const Result r = run(function_of<1>(op), {x}, true);
      const auto m = mask(op, rows, d), in = values(x), g = values(dy);
      for (std::size_t i = 0; i < m.size(); ++i) {
        ASSERT_NEAR(r.y[i], in[i] * m[i], 1e-6) << i;
        ASSERT_NEAR(r.gradients[0][i], g[i] * m[i], 1e-6) << i;
      }
    }
}

TEST(Dropout, GradientsAgreeWithDifferences) {
  Arena arena;
  const Tensor x = random_tensor(arena, {rows, 9}, DType::f64, 1);
  check_gradients(function_of<1>(Dropout{0.4, 3, sentences}), {x}, true);
  check_gradients(function_of<1>(Dropout{0.4, 3, sentences}), {x}, false);
}

TEST(Dropout, IsTheIdentityWithoutTrainingOrProbability) {
  Arena arena;
  const Tensor x = random_tensor(arena, {rows, 20}, DType::f32, 1);
  EXPECT_EQ(run(function_of<1>(Dropout{0.5, 3, sentences}), {x}, false).y, values(x));
  EXPECT_EQ(run(function_of<1>(Dropout{0, 3, sentences}), {x}, true).y, values(x));
  EXPECT_EQ(run(function_of<1>(Dropout{0.5, 3, Segments{}}), {x}, true).y, values(x));
}

TEST(Dropout, KeepsTheExpectedShare) {
  std::vector<Segment> all{{0, 512}};
  Arena arena;
  const Tensor x = arena.tensor({512, 128}, DType::f64);
  std::fill_n(x.as<double>(), x.size(), 1.0);
  const Result r = run(function_of<1>(Dropout{0.1, 3, {all, 0}}), {x}, true);
  double kept = 0, sum = 0;
  for (const double y : r.y) {
    kept += y != 0;
    sum += y;
  }
  const double deviation = std::sqrt(65536 * 0.1 * 0.9);
  EXPECT_NEAR(kept, 65536 * 0.9, 5 * deviation);
  EXPECT_NEAR(sum, 65536, 5 * deviation / 0.9);
}

TEST(Dropout, DoesNotDependOnHowSentencesArePacked) {
  // Sentences 4 and 5 together, and sentence 5 alone, elsewhere.
  Arena arena;
  const Tensor x = random_tensor(arena, {rows, 24}, DType::f32, 1);
  const Result together = run(function_of<1>(Dropout{0.5, 3, sentences}), {x}, true);
  const std::vector<Segment> one{{0, 2}};
  const Result alone = run(function_of<1>(Dropout{0.5, 3, {one, 5}}), {x.slice_rows(5, 2)}, true);
  EXPECT_EQ(alone.y, std::vector<double>(together.y.begin() + 5 * 24, together.y.begin() + 7 * 24));
}

TEST(Dropout, SitesAndUpdatesDiffer) {
  Arena arena;
  const Tensor x = random_tensor(arena, {rows, 64}, DType::f32, 1), y = arena.tensor(x.shape, x.dtype);
  const auto draw = [&](std::uint64_t key, std::uint64_t site) {
    Workspace w;
    w.exec.key = RngKey{key};
    w.exec.training = true;
    Dropout{0.5, site, sentences}.forward(w.exec, x, y);
    EXPECT_EQ(w.scratch.mark(), 0u);
    return values(y);
  };
  EXPECT_EQ(draw(1, 1), draw(1, 1));
  EXPECT_NE(draw(1, 1), draw(1, 2));
  EXPECT_NE(draw(1, 1), draw(2, 1));
}

TEST(Dropout, NotANumberStaysVisibleWhereItIsDropped) {
  Arena arena;
  const Tensor x = arena.tensor({rows, 32}, DType::f32);
  std::fill_n(x.as<float>(), x.size(), std::numeric_limits<float>::quiet_NaN());
  for (const double y : run(function_of<1>(Dropout{0.9, 3, sentences}), {x}, true).y)
    EXPECT_TRUE(std::isnan(y));
}

TEST(Dropout, BitsDoNotDependOnThreadsNorOnAddresses) {
  Arena arena;
  const std::vector<Tensor> x{random_tensor(arena, {rows, 50}, DType::f32, 1)};
  expect_thread_invariant(function_of<1>(Dropout{0.2, 3, sentences}), x, true);
  expect_address_invariant(function_of<1>(Dropout{0.2, 3, sentences}), x, true);
  expect_f32_follows_f64(function_of<1>(Dropout{0.2, 3, sentences}), {{rows, 50}}, 1e-6, true);
}

TEST(Dropout, SaysWhatDoesNotFit) {
  Arena a;
  const Tensor x = a.zeros({6, 4}, DType::f32);
  EXPECT_EQ(error_of([&] { Dropout{1.0}.shape(x); }),
            "a dropout probability of 1, expected at least 0 and below 1");
  EXPECT_EQ(error_of([&] { Dropout{-0.1}.shape(x); }),
            "a dropout probability of -0.1, expected at least 0 and below 1");
  const auto message = [&](std::vector<Segment> s) {
    return error_of([&] { Dropout{0.1, 0, {s, 0}}.shape(x); });
  };
  const std::string expected = ", expected segments in order, apart, and within 6 rows";
  EXPECT_EQ(message({{4, 3}}), "dropout: a segment of 3 rows from row 4" + expected);
  EXPECT_EQ(message({{0, 3}, {2, 2}}), "dropout: a segment of 2 rows from row 2" + expected);
  EXPECT_EQ(message({{3, 1}, {0, 1}}), "dropout: a segment of 1 rows from row 0" + expected);
  EXPECT_EQ(message({{-1, 2}}), "dropout: a segment of 2 rows from row -1" + expected);
  EXPECT_EQ(message({{1, -1}}), "dropout: a segment of -1 rows from row 1" + expected);
  EXPECT_EQ(message({{2147483647, 2147483647}}),
            "dropout: a segment of 2147483647 rows from row 2147483647" + expected);
}

TEST(ResidualDropout, IsDropoutAndAnAddition) {
  for (const double p : {0.0, 0.35})
    for (const bool training : {false, true})
      for (const DType dtype : {DType::f32, DType::f64}) {
        Arena arena;
        const std::vector<Tensor> in{random_tensor(arena, {rows, 37}, dtype, 1),
                                     random_tensor(arena, {rows, 37}, dtype, 2)};
        expect_same(
            function_of<2>(ResidualDropout{p, 11, sentences}),
            [&](Tape& tape, const std::vector<Var>& v) {
              return tape.apply(Add{}, v[0], tape.apply(Dropout{p, 11, sentences}, v[1]));
            },
            in, 1e-6, training);
      }
}

TEST(ResidualDropout, GradientsAgreeWithDifferences) {
  Arena arena;
  const std::vector<Tensor> in{random_tensor(arena, {rows, 6}, DType::f64, 1),
                               random_tensor(arena, {rows, 6}, DType::f64, 2)};
  check_gradients(function_of<2>(ResidualDropout{0.4, 3, sentences}), in, true);
  check_gradients(function_of<2>(ResidualDropout{0.4, 3, sentences}), in, false);
}

TEST(ResidualDropout, BitsDoNotDependOnThreadsNorOnAddresses) {
  Arena arena;
  const std::vector<Tensor> in{random_tensor(arena, {rows, 50}, DType::f32, 1),
                               random_tensor(arena, {rows, 50}, DType::f32, 2)};
  expect_thread_invariant(function_of<2>(ResidualDropout{0.2, 3, sentences}), in, true);
  expect_address_invariant(function_of<2>(ResidualDropout{0.2, 3, sentences}), in, true);
  expect_f32_follows_f64(function_of<2>(ResidualDropout{0.2, 3, sentences}), {{rows, 50}, {rows, 50}}, 1e-6,
                         true);
}

TEST(ResidualDropout, SaysWhatDoesNotFit) {
  Arena a;
  const Tensor x = a.zeros({6, 4}, DType::f32);
  EXPECT_EQ(error_of([&] {
              ResidualDropout{0.1}.shape(x, a.zeros({6, 3}, DType::f32));
            }),
            "residual_dropout: x [6, 4] and f [6, 3], expected the same shape");
  EXPECT_EQ(error_of([&] { ResidualDropout{2}.shape(x, x); }),
            "a dropout probability of 2, expected at least 0 and below 1");
  const std::vector<Segment> far{{5, 2}};
  EXPECT_EQ(error_of([&] {
              ResidualDropout{0.1, 0, {far, 0}}.shape(x, x);
            }),
            "residual_dropout: a segment of 2 rows from row 5, expected segments in order, apart, and within "
            "6 rows");
}

}  // namespace
}  // namespace polyhead::ops
