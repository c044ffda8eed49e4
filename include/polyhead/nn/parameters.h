#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "polyhead/core/rng.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::nn {

/// How a parameter starts.
struct Init {
  enum class Kind { zeros, ones, xavier_uniform, normal };
  Kind kind = Kind::zeros;
  double stddev = 0;  ///< of normal

  static Init zeros() { return {Kind::zeros}; }
  static Init ones() { return {Kind::ones}; }
  /// Uniform in ±√(6/(in + out)) for a matrix [out,in].
  /// Glorot & Bengio 2010, AISTATS.
  static Init xavier_uniform() { return {Kind::xavier_uniform}; }
  static Init normal(double stddev) { return {Kind::normal, stddev}; }
};

/// A named array that training changes; its values are `shape.size()` elements of the store's slab from
/// `offset`.
struct Parameter {
  std::string path;
  Shape shape;
  Init init;
  std::int64_t offset = 0;
  std::int64_t size() const { return shape.size(); }
  /// Weight decay applies to matrices, not to norms and biases.
  bool decays() const { return shape.rank() > 1; }
};

class ParameterStore;

/// A place in the tree of parameter names, "encoder/layers/0".
class Scope {
 public:
  Scope(ParameterStore& store, std::string path) : store_(&store), path_(std::move(path)) {}
  Scope operator/(std::string_view name) const;
  Scope operator/(std::int64_t index) const;
  /// Declares path/name. Throws Error when the name is taken or the store is allocated already.
  const Parameter& declare(std::string_view name, Shape shape, Init init) const;
  const std::string& path() const { return path_; }
  /// The number under which randomness at this place is drawn.
  std::uint64_t site() const { return hash(path_); }

 private:
  ParameterStore* store_;
  std::string path_;
};

/// All parameters of a model, in one slab, so that clipping, reduction and the optimiser are flat loops.
/// Gradients and moments are slabs of the same layout.
class ParameterStore {
 public:
  ParameterStore() = default;
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  Scope root() { return {*this, ""}; }
  /// Takes memory; no more declarations after it. Values are zero.
  void allocate(DType dtype);
  /// Draws the initial values. An element is a function of (seed, path, index) alone: neither the order of
  /// declaration nor any other parameter matters.
  void initialise(std::uint64_t seed);

  const std::deque<Parameter>& parameters() const { return parameters_; }
  /// Throws Error when there is no such parameter.
  const Parameter& at(std::string_view path) const;
  /// Elements of a slab, with the padding that aligns each parameter.
  std::int64_t slab_size() const { return slab_size_; }
  /// Elements of all parameters.
  std::int64_t count() const;
  DType dtype() const { return slab().dtype; }
  /// All values.
  const Tensor& slab() const;
  Tensor value(const Parameter& p) const { return view(p, slab()); }
  /// The part of a slab of this layout (gradients, moments) that belongs to `p`.
  static Tensor view(const Parameter& p, const Tensor& slab);

 private:
  friend class Scope;
  const Parameter& declare(std::string path, Shape shape, Init init);
  std::deque<Parameter> parameters_;  // a deque: layers keep references
  std::int64_t slab_size_ = 0;
  std::optional<Slab> slab_;
};

}  // namespace polyhead::nn
