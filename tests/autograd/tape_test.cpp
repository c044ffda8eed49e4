#include "polyhead/autograd/tape.h"

#include <gtest/gtest.h>

#include "polyhead/ops/dropout.h"
#include "polyhead/ops/elementwise.h"
#include "polyhead/ops/layer_norm.h"
#include "support/check_op.h"

namespace polyhead {
namespace {

using namespace polyhead::testing;
using List = std::vector<double>;

// ---- what models DifferentiableOp, decided when compiling

struct Square {
  struct Saved {};
  Shape shape(const Tensor& x) const { return x.shape; }
  Saved forward(Exec&, const Tensor&, const Tensor&) const { return {}; }
  void backward(Exec&, const Saved&, const Tensor&, const Tensor&, Grad) const {}
};
struct NoBackward {
  Shape shape(const Tensor& x) const { return x.shape; }
  NothingSaved forward(Exec&, const Tensor&, const Tensor&) const { return {}; }
};
struct BackwardWithoutGrad : NoBackward {
  void backward(Exec&, const NothingSaved&, const Tensor&, const Tensor&) const {}
};
struct BackwardOfOtherSaved : NoBackward {
  void backward(Exec&, const Square::Saved&, const Tensor&, const Tensor&, Grad) const {}
};
struct BackwardIntoTensor : NoBackward {
  void backward(Exec&, const NothingSaved&, const Tensor&, const Tensor&, const Tensor&) const {}
};
struct BackwardThatIsNotConst : NoBackward {
  void backward(Exec&, const NothingSaved&, const Tensor&, const Tensor&, Grad) {}
};
struct ShapeOfAnotherType : Square {
  int shape(const Tensor&) const { return 0; }
};
struct SavedOnTheHeap {
  Shape shape(const Tensor& x) const { return x.shape; }
  List forward(Exec&, const Tensor&, const Tensor&) const { return {}; }
  void backward(Exec&, const List&, const Tensor&, const Tensor&, Grad) const {}
};
struct SettingsOnTheHeap : Square {
  List settings;
};

static_assert(DifferentiableOp<Square, Var>);
static_assert(DifferentiableOp<ops::Add, Var, Var>);
static_assert(!DifferentiableOp<Square, Var, Var>);
static_assert(!DifferentiableOp<ops::Add, Var>);
static_assert(!DifferentiableOp<NoBackward, Var>);
static_assert(!DifferentiableOp<BackwardWithoutGrad, Var>);
static_assert(!DifferentiableOp<BackwardOfOtherSaved, Var>);
static_assert(!DifferentiableOp<BackwardIntoTensor, Var>);
static_assert(!DifferentiableOp<BackwardThatIsNotConst, Var>);
static_assert(!DifferentiableOp<ShapeOfAnotherType, Var>);
static_assert(!DifferentiableOp<SavedOnTheHeap, Var>);
static_assert(!DifferentiableOp<SettingsOnTheHeap, Var>);

// ---- recording and backward

class Tapes : public ::testing::Test {
 protected:
  Tensor tensor(const List& x) {
    const Tensor t = storage.tensor({static_cast<std::int64_t>(x.size())}, DType::f64);
    std::copy(x.begin(), x.end(), t.as<double>());
    return t;
  }
  Arena storage;
  Workspace w;
};

TEST_F(Tapes, GradientsOfAValueUsedTwiceAddUp) {
  Tape tape(w.exec, true);
  const Var a = tape.variable(tensor({1, 2})), b = tape.variable(tensor({3, 5}));
  // Σ (a ⊙ b + a ⊙ a)
  const Var y = tape.apply(
      ops::Sum{}, tape.apply(ops::Add{}, tape.apply(ops::Mul{}, a, b), tape.apply(ops::Mul{}, a, a)));
  EXPECT_EQ(values(y.value()), List{18});
  tape.backward(y);
  EXPECT_EQ(values(a.grad()), (List{5, 9}));
  EXPECT_EQ(values(b.grad()), (List{1, 2}));
}

TEST_F(Tapes, BackwardScalesAndAddsIntoGivenGradients) {
  Tape tape(w.exec, true);
  const Tensor gradient = tensor({10, 20});
  const Var a = tape.leaf(tensor({1, 2}), gradient), b = tape.leaf(tensor({3, 5}));
  tape.backward(tape.apply(ops::Sum{}, tape.apply(ops::Mul{}, a, b)), 0.5);
  EXPECT_EQ(values(gradient), (List{11.5, 22.5}));
  EXPECT_TRUE(a.wants_grad());
  EXPECT_FALSE(b.wants_grad());
  EXPECT_FALSE(b.grad());
}

TEST_F(Tapes, WhatDoesNotReachTheLossGetsNoGradient) {
  Tape tape(w.exec, true);
  const Var a = tape.variable(tensor({1, 2})), b = tape.variable(tensor({3, 5}));
  const Var aside = tape.apply(ops::Mul{}, a, b);
  tape.backward(tape.apply(ops::Sum{}, a));
  EXPECT_EQ(values(a.grad()), (List{1, 1}));
  EXPECT_FALSE(b.grad());
  EXPECT_FALSE(aside.grad());
}

TEST_F(Tapes, BackwardFromAVectorTakesItsGradient) {
  Tape tape(w.exec, true);
  const Var a = tape.variable(tensor({1, 2}));
  tape.backward(tape.apply(ops::Scale{3}, a), tensor({1, -1}));
  EXPECT_EQ(values(a.grad()), (List{3, -3}));
}

TEST_F(Tapes, AConstantLossGivesNoGradients) {
  Tape tape(w.exec, true);
  const Var y = tape.apply(ops::Sum{}, tape.leaf(tensor({1, 2})));
  EXPECT_FALSE(y.wants_grad());
  tape.backward(y);
  EXPECT_FALSE(y.grad());
}

TEST_F(Tapes, WithoutRecordingValuesAreTheSameAndNothingIsKept) {
  const Tensor x = tensor({1, 2}), gradient = tensor({0, 0});
  const auto run = [&](bool recording) {
    Workspace room;
    Tape tape(room.exec, recording);
    EXPECT_EQ(tape.recording(), recording);
    const Var a = tape.leaf(x, gradient), b = tape.variable(x);
    EXPECT_EQ(a.wants_grad(), recording);
    EXPECT_EQ(b.wants_grad(), recording);
    Var y = tape.apply(ops::Mul{}, a, b);
    for (int i = 0; i < 50; ++i) y = tape.apply(ops::Add{}, y, a);
    EXPECT_EQ(y.wants_grad(), recording);
    return std::pair{values(y.value()), room.activations.peak()};
  };
  const auto [recorded, recorded_bytes] = run(true);
  const auto [inferred, inferred_bytes] = run(false);
  EXPECT_EQ(recorded, inferred);
  EXPECT_EQ(inferred, (List{51, 104}));
  EXPECT_LT(inferred_bytes, recorded_bytes);
}

TEST_F(Tapes, ErrorsSayWhatIsWrong) {
  Tape silent(w.exec, false), tape(w.exec, true);
  const Var one = silent.variable(tensor({1})), two = tape.variable(tensor({1, 2}));
  EXPECT_EQ(error_of([&] { silent.backward(one); }), "backward on a tape that does not record");
  EXPECT_EQ(error_of([&] { tape.backward(two); }), "backward from a value of shape [2], expected a scalar");
  EXPECT_EQ(error_of([&] {
              tape.backward(two, tensor({1, 2, 3}));
            }),
            "backward with a gradient [3] of a value [2]");
  EXPECT_EQ(error_of([&] {
              tape.leaf(tensor({1, 2}), tensor({1}));
            }),
            "a gradient f64[1] for a value f64[2], expected the same");
  EXPECT_THROW(tape.apply(ops::Add{}, two, tape.variable(tensor({1, 2, 3}))), Error);
}

// ---- checkpoints

/// Values and gradients of x, γ and β of two norms with dropout between them.
List block_results(bool checkpoint, bool training) {
  Workspace w;
  w.exec.training = training;
  Arena storage;
  const Tensor x = random_tensor(storage, {3, 4}, DType::f64, 1),
               gamma = random_tensor(storage, {4}, DType::f64, 2),
               beta = random_tensor(storage, {4}, DType::f64, 3),
               dy = random_tensor(storage, {3, 4}, DType::f64, 4);
  const Segment whole{0, 3};
  const ops::Dropout dropout{0.4, 5, {{&whole, 1}, 0}};
  const auto block = [dropout](Tape& tape, Var a, Var g, Var b) {
    return tape.apply(ops::LayerNorm{}, tape.apply(dropout, tape.apply(ops::LayerNorm{}, a, g, b)), g, b);
  };
  Tape tape(w.exec, true);
  const Var vx = tape.variable(x), vg = tape.variable(gamma), vb = tape.variable(beta);
  const Var y = checkpoint ? tape.checkpoint(block, vx, vg, vb) : block(tape, vx, vg, vb);
  tape.backward(y, dy);
  List result = values(y.value());
  for (const Var v : {vx, vg, vb}) {
    const List more = values(v.grad());
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

TEST(Checkpoint, GivesTheSameBits) {
  for (const bool training : {false, true}) {
    const List plain = block_results(false, training);
    EXPECT_EQ(plain.size(), 32u);
    EXPECT_EQ(block_results(true, training), plain);
  }
  EXPECT_NE(block_results(true, true), block_results(true, false));
}

TEST(Checkpoint, KeepsOnlyItsResult) {
  Workspace w;
  Tape tape(w.exec, true);
  const Var x = tape.variable(random_tensor(w.activations, {1000}, DType::f64, 1));
  const Arena::Mark before = w.activations.mark();
  const auto block = [](Tape& t, Var a) {
    for (int i = 0; i < 20; ++i) a = t.apply(ops::Add{}, a, a);
    return a;
  };
  const Var y = tape.checkpoint(block, x);
  EXPECT_LT(w.activations.mark() - before, 2 * x.value().bytes());
  EXPECT_EQ(w.scratch.mark(), 0u);
  tape.backward(tape.apply(ops::Sum{}, y));
  EXPECT_EQ(values(x.grad()), List(1000, 0x1p20));
}

TEST(Checkpoint, WithoutRecordingIsTheBlockItself) {
  Workspace w;
  Tape tape(w.exec, false);
  const Var x = tape.variable(random_tensor(w.activations, {3}, DType::f64, 1));
  const Var y = tape.checkpoint([](Tape& t, Var a) { return t.apply(ops::Scale{2}, a); }, x);
  EXPECT_FALSE(y.wants_grad());
  EXPECT_EQ(values(y.value())[1], 2 * values(x.value())[1]);
}

}  // namespace
}  // namespace polyhead
