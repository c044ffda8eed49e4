#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "polyhead/core/error.h"

namespace polyhead {

/// The upper half of an f32: 8 bits of exponent, 7 of fraction. Only matrix products read it.
struct BFloat16 {
  std::uint16_t bits = 0;
};

enum class DType : std::uint8_t { f32, f64, i32, bf16 };

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
}

const char* name(DType dtype);
std::size_t size_of(DType dtype);

/// Calls f.template operator()<T>() with the arithmetic type of `dtype` (f32 or f64; Error for others).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    default:
      throw Error(concat("arithmetic on ", name(dtype), " tensors, expected f32 or f64"));
  }
}

/// Extents of a tensor, rank 0 (a scalar) to 4.
class Shape {
 public:
  static constexpr int max_rank = 4;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);
  int rank() const { return rank_; }
  /// Extent i; negative i counts from the end.
  std::int64_t operator[](int i) const { return extents_[static_cast<std::size_t>(i < 0 ? rank_ + i : i)]; }
  std::int64_t size() const;
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
};

/// "[12, 128]"
std::string to_string(const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// A view: contiguous, row-major, of rank at most 4. It owns nothing; an Arena or a slab does.
struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;

  template <class T>
  T* as() const {
    if (dtype != dtype_of<std::remove_const_t<T>>()) [[unlikely]]
      throw Error(
          concat("a tensor of ", name(dtype), " was read as ", name(dtype_of<std::remove_const_t<T>>())));
    return static_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {as<T>(), static_cast<std::size_t>(size())};
  }
  std::int64_t size() const { return shape.size(); }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * size_of(dtype); }
  /// As a matrix [rows, cols]: cols is the last extent, rows the product of the others.
  std::int64_t cols() const { return shape.rank() == 0 ? 1 : shape[-1]; }
  std::int64_t rows() const { return cols() == 0 ? 0 : size() / cols(); }
  explicit operator bool() const { return data != nullptr; }
  /// Rows [begin, begin + count) of a matrix.
  Tensor slice_rows(std::int64_t begin, std::int64_t count) const;
};

/// Sets every element to zero.
void fill_zero(const Tensor& t);
/// Copies src to dst; shapes and dtypes must agree.
void copy(const Tensor& src, const Tensor& dst);

/// Where backward adds a gradient; empty when nobody wants it.
struct Grad {
  Tensor tensor;
  explicit operator bool() const { return static_cast<bool>(tensor); }
  template <class T>
  T* as() const {
    return tensor.as<T>();
  }
};

}  // namespace polyhead
