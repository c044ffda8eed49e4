#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "polyhead/autograd/tape.h"
#include "polyhead/core/parallel.h"
#include "polyhead/core/rng.h"

/// Checks that every op's test makes: its gradients, its bits, its agreement with an oracle.
namespace polyhead::testing {

/// Arenas and an Exec of one thread.
struct Workspace {
  Arena activations, scratch;
  Exec exec{activations, scratch, RngKey{7}, false};
};

/// Values in (−1, 1), a function of the seed.
inline Tensor random_tensor(Arena& arena, const Shape& shape, DType dtype, std::uint64_t seed) {
  const Tensor t = arena.tensor(shape, dtype);
  RandomStream random(RngKey{seed}.fold("random_tensor"));
  dispatch(dtype, [&]<class T>() {
    for (T& x : t.span<T>()) x = static_cast<T>(2 * random.uniform() - 1);
  });
  return t;
}

inline Tensor ids(Arena& arena, const std::vector<std::int32_t>& values) {
  const Tensor t = arena.tensor({static_cast<std::int64_t>(values.size())}, DType::i32);
  std::copy(values.begin(), values.end(), t.as<std::int32_t>());
  return t;
}

inline std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  dispatch(t.dtype, [&]<class T>() { out.assign(t.span<T>().begin(), t.span<T>().end()); });
  return out;
}

/// ‖a − b‖, of as many elements as b has.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}
inline double norm(const std::vector<double>& a) { return distance(a, std::vector<double>(a.size())); }

/// A function of variables on a tape: an op, a composition of ops, or a model.
using Function = std::function<Var(Tape&, const std::vector<Var>&)>;

/// An op as a Function of N inputs.
template <std::size_t N, class Op>
Function function_of(const Op& op) {
  return [op](Tape& tape, const std::vector<Var>& in) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return tape.apply(op, in[I]...); }
    (std::make_index_sequence<N>{});
  };
}

struct Result {
  std::vector<double> y;
  std::vector<std::vector<double>> gradients;  // one an input; empty for inputs that are empty tensors
};

/// y = f(inputs) and the gradients of Σ weight ⊙ y, the weight fixed and random.
inline Result run(const Function& f, const std::vector<Tensor>& inputs, bool training = false) {
  Workspace w;
  w.exec.training = training;
  Tape tape(w.exec, true);
  std::vector<Var> vars;
  for (const Tensor& t : inputs) vars.push_back(t ? tape.variable(t) : tape.leaf(t));
  const Var y = f(tape, vars);
  Result result{values(y.value()), {}};
  tape.backward(y, random_tensor(w.scratch, y.shape(), y.dtype(), 99));
  for (const Var v : vars)
    result.gradients.push_back(!v.value() ? std::vector<double>{}
                               : v.grad() ? values(v.grad())
                                          : std::vector<double>(static_cast<std::size_t>(v.value().size())));
  return result;
}

/// Analytic against central differences in f64: |a − b| <= tolerance · max(1, |b|) for every element of every
/// input.
inline void check_gradients(const Function& f, const std::vector<Tensor>& inputs, bool training = false,
                            double tolerance = 1e-6, double step = 1e-5) {
  const Result analytic = run(f, inputs, training);
  const auto loss = [&] {
    Workspace w;
    w.exec.training = training;
    Tape tape(w.exec, false);
    std::vector<Var> vars;
    for (const Tensor& t : inputs) vars.push_back(tape.leaf(t));
    const std::vector<double> y = values(f(tape, vars).value());
    const std::vector<double> weight =
        values(random_tensor(w.scratch, {static_cast<std::int64_t>(y.size())}, DType::f64, 99));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weight[i] * y[i];
    return sum;
  };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k]) continue;
    ASSERT_EQ(inputs[k].dtype, DType::f64);
    auto x = inputs[k].span<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double kept = x[i];
      x[i] = kept + step;
      const double above = loss();
      x[i] = kept - step;
      const double below = loss();
      x[i] = kept;
      const double numeric = (above - below) / (2 * step);
      ASSERT_NEAR(analytic.gradients[k][i], numeric, tolerance * std::max(1.0, std::abs(numeric)))
          << "input " << k << " element " << i;
    }
  }
}

/// Values and all gradients of f and of its composed twin agree.
inline void expect_same(const Function& f, const Function& oracle, const std::vector<Tensor>& inputs,
                        double tolerance, bool training = false) {
  const Result a = run(f, inputs, training), b = run(oracle, inputs, training);
  ASSERT_EQ(a.y.size(), b.y.size());
  for (std::size_t i = 0; i < a.y.size(); ++i)
    ASSERT_NEAR(a.y[i], b.y[i], tolerance * std::max(1.0, std::abs(b.y[i]))) << "y, element " << i;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t i = 0; i < a.gradients[k].size(); ++i)
      ASSERT_NEAR(a.gradients[k][i], b.gradients[k][i],
                  tolerance * std::max(1.0, std::abs(b.gradients[k][i])))
          << "gradient of input " << k << ", element " << i;
}

/// The same bits when several shards run f side by side on one thread and on two.
inline void expect_thread_invariant(const Function& f, const std::vector<Tensor>& inputs,
                                    bool training = false) {
  std::vector<Result> one(4), two(4);
  parallel_for(1, 4,
               [&](std::int64_t i, int) { one[static_cast<std::size_t>(i)] = run(f, inputs, training); });
  parallel_for(2, 4,
               [&](std::int64_t i, int) { two[static_cast<std::size_t>(i)] = run(f, inputs, training); });
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(one[i].y, two[i].y);
    EXPECT_EQ(one[i].gradients, two[i].gradients);
    EXPECT_EQ(one[i].y, one[0].y);
  }
}

/// The same bits when the inputs stand 4, 8, … 60 bytes after a multiple of 64: where a slab places a
/// parameter must not matter.
inline void expect_address_invariant(const Function& f, const std::vector<Tensor>& inputs,
                                     bool training = false) {
  const Result aligned = run(f, inputs, training);
  for (std::size_t shift = 4; shift < 64; shift += 4) {
    Arena arena;
    std::vector<Tensor> shifted;
    for (const Tensor& t : inputs) {
      if (shift % size_of(t.dtype) != 0) return;
      auto* memory = arena.allocate<std::byte>(t.bytes() + shift) + shift;
      shifted.push_back(t ? Tensor{memory, t.shape, t.dtype} : t);
      if (t) copy(t, shifted.back());
    }
    const Result moved = run(f, shifted, training);
    EXPECT_EQ(moved.y, aligned.y) << "shifted by " << shift;
    EXPECT_EQ(moved.gradients, aligned.gradients) << "shifted by " << shift;
  }
}

/// In single precision f follows what it does in double: values and gradients from the same numbers.
inline void expect_f32_follows_f64(const Function& f, const std::vector<Shape>& shapes, double tolerance,
                                   bool training = false) {
  Arena arena;
  std::vector<Tensor> narrow, wide;
  for (const Shape& shape : shapes) {
    narrow.push_back(random_tensor(arena, shape, DType::f32, narrow.size()));
    wide.push_back(arena.tensor(shape, DType::f64));
    std::copy_n(narrow.back().as<float>(), shape.size(), wide.back().as<double>());
  }
  const Result a = run(f, narrow, training), b = run(f, wide, training);
  for (std::size_t i = 0; i < a.y.size(); ++i)
    ASSERT_NEAR(a.y[i], b.y[i], tolerance * std::max(1.0, std::abs(b.y[i]))) << "y, element " << i;
  for (std::size_t k = 0; k < shapes.size(); ++k)
    for (std::size_t i = 0; i < a.gradients[k].size(); ++i)
      ASSERT_NEAR(a.gradients[k][i], b.gradients[k][i],
                  tolerance * std::max(1.0, std::abs(b.gradients[k][i])))
          << "gradient of input " << k << ", element " << i;
}

/// The message of the Error that `body` throws; fails the test when it throws none.
template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace polyhead::testing
