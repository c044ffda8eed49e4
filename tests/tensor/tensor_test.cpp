#include "polyhead/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "polyhead/tensor/segments.h"
#include "support/check_op.h"

namespace polyhead {
namespace {

using testing::error_of;

TEST(DType, NamesAndSizes) {
  EXPECT_STREQ(name(DType::f32), "f32");
  EXPECT_STREQ(name(DType::f64), "f64");
  EXPECT_STREQ(name(DType::i32), "i32");
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_EQ(dtype_of<float>(), DType::f32);
  EXPECT_EQ(dtype_of<double>(), DType::f64);
  EXPECT_EQ(dtype_of<std::int32_t>(), DType::i32);
}

TEST(DType, DispatchCallsWithTheType) {
  EXPECT_EQ(dispatch(DType::f32, []<class T>() { return sizeof(T); }), 4u);
  EXPECT_EQ(dispatch(DType::f64, []<class T>() { return sizeof(T); }), 8u);
  EXPECT_EQ(error_of([] { dispatch(DType::i32, []<class T>() { return sizeof(T); }); }),
            "arithmetic on i32 tensors, expected f32 or f64");
}

TEST(Shape, ExtentsSizeAndText) {
  const Shape s{2, 3, 5};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s[0], 2);
  EXPECT_EQ(s[-1], 5);
  EXPECT_EQ(s[-3], 2);
  EXPECT_EQ(s.size(), 30);
  EXPECT_EQ(to_string(s), "[2, 3, 5]");
  EXPECT_EQ(concat(Shape{}), "[]");
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ((Shape{4, 0}).size(), 0);
}

TEST(Shape, Equality) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_NE(Shape{}, Shape{0});
  const std::vector<std::int64_t> extents{2, 3};
  EXPECT_EQ(Shape(std::span<const std::int64_t>(extents)), (Shape{2, 3}));
}

TEST(Shape, RefusesWhatIsNoShape) {
  EXPECT_EQ(error_of([] { Shape{1, 2, 3, 4, 5}; }), "a shape of rank 5, expected at most 4");
  EXPECT_EQ(error_of([] { Shape{2, -1}; }), "an extent of -1, expected at least 0");
}

TEST(Tensor, IsAMatrixOfItsLastExtent) {
  const auto matrix = [](const Shape& s) {
    const Tensor t{nullptr, s, DType::f32};
    return std::pair{t.rows(), t.cols()};
  };
  EXPECT_EQ(matrix({2, 3, 5}), (std::pair<std::int64_t, std::int64_t>{6, 5}));
  EXPECT_EQ(matrix({7}), (std::pair<std::int64_t, std::int64_t>{1, 7}));
  EXPECT_EQ(matrix({}), (std::pair<std::int64_t, std::int64_t>{1, 1}));
  EXPECT_EQ(matrix({0, 4}), (std::pair<std::int64_t, std::int64_t>{0, 4}));
  EXPECT_EQ(matrix({4, 0}), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  EXPECT_EQ((Tensor{nullptr, {3, 5}, DType::f64}).bytes(), 120u);
  EXPECT_FALSE(Tensor{});
}

TEST(Tensor, ReadAsAnotherTypeIsAnError) {
  double x[2] = {1, 2};
  const Tensor t{x, {2}, DType::f64};
  EXPECT_EQ(t.as<double>()[1], 2);
  EXPECT_EQ(t.span<const double>().size(), 2u);
  EXPECT_EQ(error_of([&] { t.as<float>(); }), "a tensor of f64 was read as f32");
  EXPECT_EQ(error_of([&] { (Grad{t}.as<std::int32_t>()); }), "a tensor of f64 was read as i32");
}

TEST(Tensor, SliceRowsLooksIntoTheSameMemory) {
  float x[12];
  const Tensor t{x, {2, 2, 3}, DType::f32};
  const Tensor s = t.slice_rows(1, 2);
  EXPECT_EQ(s.data, x + 3);
  EXPECT_EQ(s.shape, (Shape{2, 3}));
  EXPECT_EQ(t.slice_rows(4, 0).size(), 0);
  EXPECT_EQ(error_of([&] { t.slice_rows(3, 2); }), "rows 3 to 5 of a tensor [2, 2, 3]");
  EXPECT_EQ(error_of([&] { t.slice_rows(-1, 2); }), "rows -1 to 1 of a tensor [2, 2, 3]");
}

TEST(Tensor, FillAndCopy) {
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  const Tensor a{x, {2, 2}, DType::f32}, b{y, {2, 2}, DType::f32};
  copy(a, b);
  EXPECT_EQ(y[3], 4);
  fill_zero(a);
  EXPECT_EQ(x[0], 0);
  EXPECT_EQ(x[3], 0);
  fill_zero(Tensor{nullptr, {0}, DType::f32});
  EXPECT_EQ(error_of([&] {
              copy(a, Tensor{y, {4}, DType::f32});
            }),
            "copy of f32[2, 2] to f32[4], expected the same");
  EXPECT_EQ(error_of([&] {
              copy(a, Tensor{y, {2, 2}, DType::i32});
            }),
            "copy of f32[2, 2] to i32[2, 2], expected the same");
}

TEST(Segments, CountAndRows) {
  const Segment spans[] = {{0, 3}, {5, 2}};
  const Segments s{spans, 7};
  EXPECT_EQ(s.count(), 2);
  EXPECT_EQ(s.rows(), 5);
  EXPECT_EQ(s[1], (Segment{5, 2}));
  EXPECT_EQ(Segments{}.count(), 0);
  EXPECT_EQ(Segments{}.rows(), 0);
}

}  // namespace
}  // namespace polyhead
