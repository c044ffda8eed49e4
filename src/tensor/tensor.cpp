#include "polyhead/tensor/tensor.h"

#include <cstring>
#include <ostream>

namespace polyhead {

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::bf16:
      return "bf16";
  }
  return "unknown";
}

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 2;
    case DType::f64:
      return 8;
    default:
      return 4;
  }
}

Shape::Shape(std::span<const std::int64_t> extents) {
  require(extents.size() <= max_rank, "a shape of rank ", extents.size(), ", expected at most ", max_rank);
  for (const std::int64_t extent : extents) {
    require(extent >= 0, "an extent of ", extent, ", expected at least 0");
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
}

std::int64_t Shape::size() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= (*this)[i];
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

Tensor Tensor::slice_rows(std::int64_t begin, std::int64_t count) const {
  require(begin >= 0 && count >= 0 && begin + count <= rows(), "rows ", begin, " to ", begin + count,
          " of a tensor ", shape);
  auto* first = static_cast<std::byte*>(data) + static_cast<std::size_t>(begin * cols()) * size_of(dtype);
  return {first, {count, cols()}, dtype};
}

void fill_zero(const Tensor& t) {
  if (t.bytes() > 0) std::memset(t.data, 0, t.bytes());
}

void copy(const Tensor& src, const Tensor& dst) {
  require(src.shape == dst.shape && src.dtype == dst.dtype, "copy of ", name(src.dtype), src.shape, " to ",
          name(dst.dtype), dst.shape, ", expected the same");
  if (src.bytes() > 0) std::memmove(dst.data, src.data, src.bytes());
}

}  // namespace polyhead
