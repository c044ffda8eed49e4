#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "polyhead/core/exec.h"
#include "polyhead/core/profile.h"
#include "polyhead/tensor/arena.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead {

/// A value on a tape: a handle that is copied freely and lives as long as the tape's arena is not rewound.
class Var {
 public:
  Var() = default;
  const Tensor& value() const { return record_->value; }
  /// The gradient that backward has added up so far; empty when nothing reached this value, and once backward has
  /// passed the op that made it.
  const Tensor& grad() const { return record_->grad; }
  const Shape& shape() const { return record_->value.shape; }
  DType dtype() const { return record_->value.dtype; }
  bool wants_grad() const { return record_->wants_grad; }
  explicit operator bool() const { return record_ != nullptr; }

 private:
  friend class Tape;
  struct Record {
    Tensor value, grad;
    bool wants_grad;
  };
  explicit Var(Record* record) : record_(record) {}
  Record* record_ = nullptr;
};

namespace detail {
template <class, class T>
using Repeat = T;
template <class Op, class... In>
using SavedOf = decltype(std::declval<const Op&>().forward(
    std::declval<Exec&>(), std::declval<Repeat<In, const Tensor&>>()..., std::declval<const Tensor&>()));
}  // namespace detail

/// An op: a trivially destructible struct whose settings are members, with
///   Shape shape(inputs...) const              throws Error when shapes do not fit;
///   Saved forward(Exec&, inputs..., y) const  writes y, returns what backward needs;
///   void backward(Exec&, saved, dy, inputs..., Grad per input) const
///                                             *adds* into each Grad that is not empty.
/// Saved is trivially destructible too; tensors in it come from exec.activations.
template <class Op, class... In>
concept DifferentiableOp = std::is_trivially_destructible_v<Op> && std::is_trivially_copyable_v<Op> &&
    requires(const Op& op, Exec& exec, const Tensor& t, Grad g) {
  { op.shape(std::declval<detail::Repeat<In, const Tensor&>>()...) } -> std::same_as<Shape>;
  {op.forward(exec, std::declval<detail::Repeat<In, const Tensor&>>()..., t)};
  requires std::is_trivially_destructible_v<detail::SavedOf<Op, In...>>;
  op.backward(exec, std::declval<const detail::SavedOf<Op, In...>&>(), t,
              std::declval<detail::Repeat<In, const Tensor&>>()...,
              std::declval<detail::Repeat<In, Grad>>()...);
};

/// What an op that has nothing to keep returns from forward.
struct NothingSaved {};

/// Runs ops and, when recording, remembers them for backward. A tape that does not record is inference: there
/// is no second forward path. Nodes live in the arena of activations and are dropped when it is rewound; the
/// order of creation is the topological order.
class Tape {
 public:
  Tape(Exec& exec, bool recording) : exec_(exec), recording_(recording) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Exec& exec() const { return exec_; }
  bool recording() const { return recording_; }

  /// A value from outside. When `grad` is given (same shape and dtype), backward adds the gradient into it.
  Var leaf(const Tensor& value, const Tensor& grad = {});
  /// A value from outside whose gradient is kept on the tape: Var::grad() after backward.
  Var variable(const Tensor& value);

  /// y = op(in...), of the dtype of the first input.
  template <class Op, std::same_as<Var>... In>
  requires DifferentiableOp<Op, In...> Var apply(const Op& op, In... in);

  /// y = block(tape, in...), computed without keeping what is inside: backward runs the block again (Chen et
  /// al. 2016, arXiv:1604.06174). Randomness is keyed by counters, so the second run gives the same bits.
  /// Parameters used inside get their gradients from the second run.
  template <class Block, std::same_as<Var>... In>
  Var checkpoint(const Block& block, In... in);

  /// Adds ∂loss/∂· · scale to every gradient that is wanted. loss has one element. Throws Error when the tape
  /// does not record or loss is not a scalar. A tape runs backward once.
  void backward(Var loss, double scale = 1.0);
  /// As above with a given ∂/∂y of the shape of y.
  void backward(Var y, const Tensor& dy);

 private:
  struct Node {
    void (*run)(Tape&, const Node&);
    Node* previous;
  };
  /// Memory of a gradient that was given back.
  struct Spare {
    void* data;
    std::size_t bytes;
    Spare* next;
  };
  template <class Op, class Saved, std::size_t N>
  struct OpNode;
  template <class Block, std::size_t N>
  struct BlockNode;

  Var make(const Tensor& value, bool wants_grad);
  /// The gradient of a value for backward to add into: empty when not wanted, zeroed when first asked for.
  Grad grad_of(Var v);
  /// Gives back the gradient of an op's output, which nothing reads once the op has run backward: few gradients live
  /// at a time, and the next one finds memory that is still in cache.
  void release_grad(Var v);
  template <class NodeType, class... Parts>
  void push(void (*run)(Tape&, const Node&), const Parts&... parts);
  template <class NodeType, std::size_t... I>
  static void run_op(Tape& tape, const Node& base, std::index_sequence<I...>);
  template <class Block, std::size_t N, std::size_t... I>
  static void run_block(Tape& tape, const Node& base, std::index_sequence<I...>);

  Exec& exec_;
  bool recording_;
  Node* last_ = nullptr;
  Spare* spare_ = nullptr;
};

// ---- implementation

template <class Op, class Saved, std::size_t N>
struct Tape::OpNode : Tape::Node {
  Op op;
  Saved saved;
  std::array<Var, N> in;
  Var out;
};

template <class Block, std::size_t N>
struct Tape::BlockNode : Tape::Node {
  Block block;
  std::array<Var, N> in;
  Var out;
};

template <class NodeType, class... Parts>
void Tape::push(void (*run)(Tape&, const Node&), const Parts&... parts) {
  static_assert(std::is_trivially_destructible_v<NodeType>);
  last_ = new (exec_.activations.allocate<NodeType>()) NodeType{{run, last_}, parts...};
}

template <class NodeType, std::size_t... I>
void Tape::run_op(Tape& tape, const Node& base, std::index_sequence<I...>) {
  const auto& node = static_cast<const NodeType&>(base);
  if (!node.out.grad()) return;  // nothing depends on it
  const ProfileTimer timer(tape.exec_.profile, type_name<decltype(node.op)>(), Pass::backward);
  node.op.backward(tape.exec_, node.saved, node.out.grad(), node.in[I].value()...,
                   tape.grad_of(node.in[I])...);
  tape.release_grad(node.out);
}

template <class Op, std::same_as<Var>... In>
requires DifferentiableOp<Op, In...> Var Tape::apply(const Op& op, In... in) {
  const Shape shape = op.shape(in.value()...);
  const std::array inputs{in...};
  const Var out =
      make(exec_.activations.tensor(shape, inputs[0].dtype()), recording_ && (in.wants_grad() || ...));
  const auto saved = [&] {
    const ProfileTimer timer(exec_.profile, type_name<Op>(), Pass::forward);
    return op.forward(exec_, in.value()..., out.value());
  }();
  if (out.wants_grad()) {
    constexpr std::size_t n = sizeof...(In);
    using NodeType = OpNode<Op, detail::SavedOf<Op, In...>, n>;
    push<NodeType>(
        [](Tape& tape, const Node& base) { run_op<NodeType>(tape, base, std::make_index_sequence<n>{}); }, op,
        saved, inputs, out);
  }
  return out;
}

template <class Block, std::size_t N, std::size_t... I>
void Tape::run_block(Tape& tape, const Node& base, std::index_sequence<I...>) {
  const auto& node = static_cast<const BlockNode<Block, N>&>(base);
  if (!node.out.grad()) return;
  const Tensor grads[] = {tape.grad_of(node.in[I]).tensor...};
  {
    const ArenaScope scope(tape.exec_.activations);
    Tape inner(tape.exec_, true);
    const Var leaves[] = {inner.leaf(node.in[I].value(), grads[I])...};
    inner.backward(node.block(inner, leaves[I]...), node.out.grad());
  }
  tape.release_grad(node.out);
}

template <class Block, std::same_as<Var>... In>
Var Tape::checkpoint(const Block& block, In... in) {
  static_assert(std::is_trivially_destructible_v<Block> && std::is_trivially_copyable_v<Block>);
  if (!recording_) return block(*this, in...);
  Var out;
  {
    const ArenaScope keep(exec_.scratch);
    const Arena::Mark mark = exec_.activations.mark();
    Tape inner(exec_, false);
    const Tensor inside = block(inner, in...).value();
    const Tensor moved = exec_.scratch.tensor(inside.shape, inside.dtype);
    copy(inside, moved);
    exec_.activations.rewind(mark);
    out = make(exec_.activations.tensor(moved.shape, moved.dtype), true);
    copy(moved, out.value());
  }
  constexpr std::size_t n = sizeof...(In);
  push<BlockNode<Block, n>>(
      [](Tape& tape, const Node& base) { run_block<Block, n>(tape, base, std::make_index_sequence<n>{}); },
      block, std::array{in...}, out);
  return out;
}

}  // namespace polyhead
