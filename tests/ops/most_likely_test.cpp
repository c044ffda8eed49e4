#include "polyhead/ops/most_likely.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "polyhead/ops/linear.h"
#include "polyhead/ops/softmax.h"
#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// An output layer, with features of some rows.
struct Inputs {
  Tensor x, weight, bias;
};

/// Logits far apart, or with `distinct` > 0 many equal ones.
Inputs random_inputs(Arena& arena, std::int64_t n, std::int64_t vocabulary, std::int64_t d, DType dtype,
                     bool bias, double distinct = 0) {
  Inputs in{random_tensor(arena, {n, d}, dtype, 1), random_tensor(arena, {vocabulary, d}, dtype, 2),
            bias ? random_tensor(arena, {vocabulary}, dtype, 3) : Tensor{}};
  for (const Tensor& t : {in.x, in.weight, in.bias})
    if (t && distinct > 0)
      dispatch(dtype, [&]<class T>() {
        for (T& value : t.span<T>())
          value = static_cast<T>(std::round(static_cast<double>(value) * distinct));
      });
  return in;
}

struct Best {
  std::vector<double> log_probabilities;
  std::vector<std::int32_t> ids;
};

/// All log-probabilities of a row, sorted.
Best by_sorting(std::vector<double> row, const MostLikely& op) {
  if (op.excluded >= 0 && op.excluded < std::ssize(row))
    row[static_cast<std::size_t>(op.excluded)] = -infinity;
  std::vector<std::int32_t> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto value = [&](std::int32_t id) { return row[static_cast<std::size_t>(id)]; };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int32_t a, std::int32_t b) { return value(a) > value(b); });
  std::erase_if(ids, [&](std::int32_t id) { return value(id) == -infinity; });
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(op.count)));
  Best best;
  for (const std::int32_t id : ids) best.log_probabilities.push_back(value(id));
  best.ids = ids;
  best.log_probabilities.resize(static_cast<std::size_t>(op.count), -infinity);
  best.ids.resize(static_cast<std::size_t>(op.count), -1);
  return best;
}

void expect_sorted_whole(const Inputs& in, const MostLikely& op, double tolerance) {
  Workspace w;
  Tape tape(w.exec, false);
  const Var logits = tape.apply(Linear{}, tape.leaf(in.x), tape.leaf(in.weight),
                                tape.leaf(in.bias ? in.bias : Tensor{nullptr, {}, in.x.dtype}));
  const Tensor whole = tape.apply(Softmax{.log = true}, logits).value();
  const MostLikely::Words words = op(w.exec, in.x, in.weight, in.bias);
  ASSERT_EQ(words.ids.shape, (Shape{in.x.rows(), op.count}));
  for (std::int64_t r = 0; r < in.x.rows(); ++r) {
    const Best best = by_sorting(values(whole.slice_rows(r, 1)), op);
    const std::vector<double> found = values(words.log_probabilities.slice_rows(r, 1));
    const auto ids = words.ids.slice_rows(r, 1).span<std::int32_t>();
    ASSERT_EQ(std::vector<std::int32_t>(ids.begin(), ids.end()), best.ids)
        << in.weight.shape << " row " << r << ", " << op.count << " words";
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (best.ids[i] < 0)
        EXPECT_EQ(found[i], -infinity);
      else
        EXPECT_NEAR(found[i], best.log_probabilities[i], tolerance);
    }
  }
}

TEST(MostLikely, IsTheHeadOfTheSortedWhole) {
  Arena arena;
  for (const std::int64_t vocabulary : {1, 2, 31, 33, 511, 512, 513, 545, 1700})
    for (const std::int64_t count : {1, 2, 10, 16, 17, 100})
      for (const std::int32_t excluded : {-1, 1, 512})
        for (const bool bias : {false, true}) {
          const MostLikely op{count, excluded};
          expect_sorted_whole(random_inputs(arena, 3, vocabulary, 7, DType::f64, bias), op, 1e-13);
          // Equal logits, exactly so in any order of sums.
          expect_sorted_whole(random_inputs(arena, 3, vocabulary, 4, DType::f64, bias, 2), op, 1e-13);
          expect_sorted_whole(random_inputs(arena, 3, vocabulary, 4, DType::f32, bias, 2), op, 1e-5);
        }
}

TEST(MostLikely, TakesManyRowsInBlocks) {
  Arena arena;
  expect_sorted_whole(random_inputs(arena, 1030, 600, 5, DType::f64, true), {4, 1}, 1e-13);
}

TEST(MostLikely, ARowsBitsDoNotDependOnTheOthers) {
  Arena arena;
  const Inputs in = random_inputs(arena, 40, 1100, 24, DType::f32, true);
  Workspace w;
  const MostLikely op{6, 1};
  const MostLikely::Words all = op(w.exec, in.x, in.weight, in.bias);
  for (const std::int64_t r : {0, 13, 39}) {
    const MostLikely::Words alone = op(w.exec, in.x.slice_rows(r, 1), in.weight, in.bias);
    EXPECT_EQ(values(alone.log_probabilities), values(all.log_probabilities.slice_rows(r, 1)));
  }
}

TEST(MostLikely, EndsWithNothingWhereWordsAreImpossible) {
  Arena arena;
  const Inputs in = random_inputs(arena, 2, 600, 3, DType::f64, true);
  std::fill_n(in.bias.as<double>() + 2, 598, -infinity);
  expect_sorted_whole(in, {4, 1}, 1e-13);
  std::fill_n(in.bias.as<double>(), 600, -infinity);
  Workspace w;
  const MostLikely::Words none = MostLikely{3, 1}(w.exec, in.x, in.weight, in.bias);
  EXPECT_THAT(values(none.log_probabilities), ::testing::Each(-infinity));
  EXPECT_THAT(none.ids.span<std::int32_t>(), ::testing::Each(-1));
  // Logits whose difference to the sum overflows.
  const Inputs far = random_inputs(arena, 2, 600, 3, DType::f32, true);
  std::fill_n(far.bias.as<float>(), 600, -3e38F);
  far.bias.as<float>()[1] = 3e38F;
  const MostLikely::Words beside = MostLikely{3, 1}(w.exec, far.x, far.weight, far.bias);
  EXPECT_THAT(values(beside.log_probabilities), ::testing::Each(-infinity));
  EXPECT_THAT(beside.ids.span<std::int32_t>(), ::testing::Each(-1));
}

TEST(MostLikely, ShowsNumbersThatFail) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {nan, infinity})
    for (const std::int64_t word : {0, 1, 300, 599}) {
      Arena arena;
      const Inputs in = random_inputs(arena, 2, 600, 3, DType::f64, true);
      in.bias.as<double>()[word] = bad;
      Workspace w;
      const MostLikely::Words words = MostLikely{4, 1}(w.exec, in.x, in.weight, in.bias);
      for (const double value : values(words.log_probabilities)) EXPECT_TRUE(std::isnan(value)) << word;
    }
}

TEST(MostLikely, RefusesShapesThatDoNotFit) {
  Arena arena;
  Workspace w;
  const Inputs in = random_inputs(arena, 2, 5, 3, DType::f32, true);
  const auto message = [&](const MostLikely& op, const Tensor& weight, const Tensor& bias) {
    try {
      op(w.exec, in.x, weight, bias);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(message({0}, in.weight, in.bias), "most_likely: 0 words of a row, expected at least 1");
  EXPECT_EQ(message({1}, random_tensor(arena, {5, 4}, DType::f32, 1), in.bias),
            "most_likely: x [2, 3] and weight [5, 4], expected [N, d] and [V, d]");
  EXPECT_EQ(message({1}, in.weight, random_tensor(arena, {4}, DType::f32, 1)),
            "most_likely: bias [4], expected [5]");
}

}  // namespace
}  // namespace polyhead::ops
