#include "polyhead/ops/embedding.h"

namespace polyhead::ops {
namespace {

void require_ids(const char* what, const Tensor& ids, std::int64_t rows) {
  require(ids.dtype == DType::i32 && ids.shape.rank() == 1, what, "s ", name(ids.dtype), ids.shape,
          ", expected i32[N]");
  for (const std::int32_t id : ids.span<std::int32_t>())
    require(id >= 0 && id < rows, what, " ", id, ", expected 0 to ", rows - 1);
}

/// table[ids[n]] += factor·dy[n], in the order of n.
template <class T>
void scatter_add(const Tensor& ids, const Tensor& dy, Grad table, T factor) {
  const std::int64_t d = dy.cols();
  const std::int32_t* id = ids.as<std::int32_t>();
  for (std::int64_t n = 0; n < ids.size(); ++n) {
    const T* from = dy.as<T>() + n * d;
    T* to = table.as<T>() + id[n] * d;
#pragma omp simd
    for (std::int64_t i = 0; i < d; ++i) to[i] += factor * from[i];
  }
}

}  // namespace

Shape Embedding::shape(const Tensor& weight) const {
  require(weight.shape.rank() == 2, "embedding: weight ", weight.shape, ", expected [vocabulary, features]");
  require_ids("embedding: token id", ids, weight.rows());
  return {ids.size(), weight.cols()};
}

Embedding::Saved Embedding::forward(Exec&, const Tensor& weight, const Tensor& y) const {
  const std::int64_t d = weight.cols();
  const std::int32_t* id = ids.as<std::int32_t>();
  dispatch(weight.dtype, [&]<class T>() {
    const T factor = static_cast<T>(scale);
    for (std::int64_t n = 0; n < ids.size(); ++n) {
      const T* from = weight.as<T>() + id[n] * d;
      T* to = y.as<T>() + n * d;
#pragma omp simd
      for (std::int64_t i = 0; i < d; ++i) to[i] = factor * from[i];
    }
  });
  return {};
}

void Embedding::backward(Exec&, const Saved&, const Tensor& dy, const Tensor&, Grad dweight) const {
  if (!dweight) return;
  dispatch(dy.dtype, [&]<class T>() { scatter_add<T>(ids, dy, dweight, static_cast<T>(scale)); });
}

Shape AddPositions::shape(const Tensor& x, const Tensor& table) const {
  require(x.shape.rank() == 2 && table.shape.rank() == 2 && table.cols() == x.cols(), "add_positions: table ",
          table.shape, " for x ", x.shape, ", expected [max_length, features] for [N, features]");
  require_ids("add_positions: position", positions, table.rows());
  require(positions.size() == x.rows(), "add_positions: ", positions.size(), " positions for x ", x.shape);
  return x.shape;
}

AddPositions::Saved AddPositions::forward(Exec&, const Tensor& x, const Tensor& table,
                                          const Tensor& y) const {
  const std::int64_t d = x.cols();
  const std::int32_t* position = positions.as<std::int32_t>();
  dispatch(x.dtype, [&]<class T>() {
    for (std::int64_t n = 0; n < x.rows(); ++n) {
      const T* in = x.as<T>() + n * d;
      const T* add = table.as<T>() + position[n] * d;
      T* out = y.as<T>() + n * d;
#pragma omp simd
      for (std::int64_t i = 0; i < d; ++i) out[i] = in[i] + add[i];
    }
  });
  return {};
}

void AddPositions::backward(Exec&, const Saved&, const Tensor& dy, const Tensor&, const Tensor&, Grad dx,
                            Grad dtable) const {
  dispatch(dy.dtype, [&]<class T>() {
    if (dtable) scatter_add<T>(positions, dy, dtable, T{1});
    if (!dx) return;
    const T* from = dy.as<T>();
    T* to = dx.as<T>();
    const std::int64_t n = dy.size();
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  });
}

}  // namespace polyhead::ops
