#include "polyhead/nn/parameters.h"

#include <cmath>
#include <numbers>

namespace polyhead::nn {
namespace {

constexpr std::int64_t alignment = 16;  // elements: 64 bytes of f32

/// Uniform in (0, 1), 32 bits.
double unit(std::uint32_t bits) { return (bits + 0.5) * 0x1p-32; }

double draw(const Parameter& p, RngKey key, std::int64_t index) {
  const auto block =
      philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0}, key.value);
  switch (p.init.kind) {
    case Init::Kind::zeros:
      return 0;
    case Init::Kind::ones:
      return 1;
    case Init::Kind::xavier_uniform:
      return (2 * unit(block[0]) - 1) * std::sqrt(6.0 / static_cast<double>(p.shape[0] + p.shape[1]));
    case Init::Kind::normal:  // Box & Muller 1958
      return p.init.stddev * std::sqrt(-2 * std::log(unit(block[0]))) *
             std::cos(2 * std::numbers::pi * unit(block[1]));
  }
  return 0;
}

}  // namespace

Scope Scope::operator/(std::string_view name) const {
  return {*store_, path_.empty() ? std::string(name) : path_ + "/" + std::string(name)};
}

Scope Scope::operator/(std::int64_t index) const { return *this / std::to_string(index); }

const Parameter& Scope::declare(std::string_view name, Shape shape, Init init) const {
  return store_->declare((*this / name).path(), shape, init);
}

const Parameter& ParameterStore::declare(std::string path, Shape shape, Init init) {
  require(!slab_, "parameter ", path, " declared after memory was allocated");
  require(init.kind != Init::Kind::xavier_uniform || shape.rank() == 2, "parameter ", path,
          ": xavier_uniform of shape ", shape, ", expected a matrix");
  for (const Parameter& p : parameters_) require(p.path != path, "parameter ", path, " declared twice");
  parameters_.push_back({std::move(path), shape, init, slab_size_});
  slab_size_ += (shape.size() + alignment - 1) / alignment * alignment;
  return parameters_.back();
}

void ParameterStore::allocate(DType dtype) { slab_.emplace(Shape{slab_size_}, dtype); }

void ParameterStore::initialise(std::uint64_t seed) {
  for (const Parameter& p : parameters_) {
    const RngKey key = RngKey{seed}.fold("initialise").fold(p.path);
    dispatch(dtype(), [&]<class T>() {
      T* x = value(p).as<T>();
      for (std::int64_t i = 0; i < p.size(); ++i) x[i] = static_cast<T>(draw(p, key, i));
    });
  }
}

const Parameter& ParameterStore::at(std::string_view path) const {
  for (const Parameter& p : parameters_)
    if (p.path == path) return p;
  throw Error(concat("no parameter ", path));
}

std::int64_t ParameterStore::count() const {
  std::int64_t sum = 0;
  for (const Parameter& p : parameters_) sum += p.size();
  return sum;
}

const Tensor& ParameterStore::slab() const {
  require(slab_.has_value(), "parameters have no memory yet");
  return slab_->tensor();
}

Tensor ParameterStore::view(const Parameter& p, const Tensor& slab) {
  return {static_cast<std::byte*>(slab.data) + static_cast<std::size_t>(p.offset) * size_of(slab.dtype),
          p.shape, slab.dtype};
}

}  // namespace polyhead::nn
