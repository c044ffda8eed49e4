#include "polyhead/autograd/tape.h"

#include <gtest/gtest.h>

#include "polyhead/ops/layer_norm.h"

namespace polyhead {
namespace {

struct Workspace {
  Arena activations, scratch;
  Exec exec{activations, scratch, {1}, false};
};

TEST(Tape, CheckpointGivesTheSameBits) {
  Workspace w;
  Arena storage;
  const Tensor x = storage.tensor({3, 4}, DType::f64), gamma = storage.tensor({4}, DType::f64), beta = storage.tensor({4}, DType::f64);
  for (int i = 0; i < 12; ++i) x.as<double>()[i] = i * i - 3.0 * i;
  for (int i = 0; i < 4; ++i) gamma.as<double>()[i] = 1 + 0.1 * i, beta.as<double>()[i] = i;
  const auto block = [](Tape& tape, Var a, Var g, Var b) {
    return tape.apply(ops::LayerNorm{}, tape.apply(ops::LayerNorm{}, a, g, b), g, b);
  };
  const Tensor dy = storage.zeros({3, 4}, DType::f64);
  dy.as<double>()[5] = 1;
  std::vector<double> plain, again;
  for (auto* out : {&plain, &again}) {
    Tape tape(w.exec, true);
    const Var vx = tape.variable(x), vg = tape.variable(gamma), vb = tape.variable(beta);
    const Var y = out == &plain ? block(tape, vx, vg, vb) : tape.checkpoint(block, vx, vg, vb);
    tape.backward(y, dy);
    for (const Var v : {y}) out->insert(out->end(), v.value().as<double>(), v.value().as<double>() + 12);
    for (const Var v : {vx, vg, vb}) out->insert(out->end(), v.grad().as<double>(), v.grad().as<double>() + v.value().size());
  }
  EXPECT_EQ(plain, again);
  EXPECT_EQ(plain.size(), 32u);
}

}  // namespace
}  // namespace polyhead
