#include "polyhead/ops/cross_entropy.h"

#include <gmock/gmock.h>

#include <limits>

#include "support/check_op.h"

namespace polyhead::ops {
namespace {

using namespace polyhead::testing;
using ::testing::ElementsAre;

/// The plain composition: whole logits, then log-softmax, then the loss, all in double.
struct NaiveCrossEntropy {
  Tensor targets;
  double label_smoothing;
  struct Saved {};

  Shape shape(const Tensor&, const Tensor&, const Tensor&) const { return {1}; }

  /// log p of one token.
  std::vector<double> log_probabilities(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                        std::int64_t n) const {
    return dispatch(x.dtype, [&]<class T>() {
      const std::int64_t d = x.cols(), v = weight.rows();
      std::vector<double> z(static_cast<std::size_t>(v));
      double sum = 0;
      for (std::int64_t j = 0; j < v; ++j) {
        double dot = bias ? static_cast<double>(bias.as<T>()[j]) : 0;
        for (std::int64_t i = 0; i < d; ++i)
          dot += static_cast<double>(x.as<T>()[n * d + i]) * static_cast<double>(weight.as<T>()[j * d + i]);
        z[static_cast<std::size_t>(j)] = dot;
        sum += std::exp(dot);
      }
      for (double& value : z) value -= std::log(sum);
      return z;
    });
  }

  Saved forward(Exec&, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y) const {
    double loss = 0;
    for (std::int64_t n = 0; n < x.rows(); ++n) {
      const auto log_p = log_probabilities(x, weight, bias, n);
      loss -= (1 - label_smoothing) * log_p[static_cast<std::size_t>(targets.as<std::int32_t>()[n])];
      for (const double value : log_p) loss -= label_smoothing / static_cast<double>(log_p.size()) * value;
    }
    dispatch(y.dtype, [&]<class T>() { *y.as<T>() = static_cast<T>(loss); });
    return {};
  }

  void backward(Exec&, const Saved&, const Tensor& dy, const Tensor& x, const Tensor& weight,
                const Tensor& bias, Grad dx, Grad dweight, Grad dbias) const {
    const std::int64_t d = x.cols(), v = weight.rows();
    dispatch(x.dtype, [&]<class T>() {
      for (std::int64_t n = 0; n < x.rows(); ++n) {
        const auto log_p = log_probabilities(x, weight, bias, n);
        for (std::int64_t j = 0; j < v; ++j) {
          double g = std::exp(log_p[static_cast<std::size_t>(j)]) - label_smoothing / static_cast<double>(v);
          if (targets.as<std::int32_t>()[n] == j) g -= 1 - label_smoothing;
          g *= static_cast<double>(*dy.as<T>());
          for (std::int64_t i = 0; i < d; ++i) {
            dx.as<T>()[n * d + i] += static_cast<T>(g * static_cast<double>(weight.as<T>()[j * d + i]));
            dweight.as<T>()[j * d + i] += static_cast<T>(g * static_cast<double>(x.as<T>()[n * d + i]));
          }
          if (dbias) dbias.as<T>()[j] += static_cast<T>(g);
        }
      }
    });
  }
};

struct Case {
  std::int64_t tokens, d, vocabulary;
  bool bias;
  double label_smoothing;
};

struct Inputs {
  Arena arena;
  std::vector<Tensor> tensors;
  Tensor targets;

  Inputs(const Case& c, DType dtype) {
    tensors = {random_tensor(arena, {c.tokens, c.d}, dtype, 1),
               random_tensor(arena, {c.vocabulary, c.d}, dtype, 2),
               c.bias ? random_tensor(arena, {c.vocabulary}, dtype, 3) : Tensor{nullptr, {}, dtype}};
    std::vector<std::int32_t> drawn;
    RandomStream random(RngKey{4});
    for (std::int64_t i = 0; i < c.tokens; ++i)
      drawn.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(c.vocabulary))));
    targets = ids(arena, drawn);
  }
};

ProjectedCrossEntropy op_of(const Case& c, const Inputs& in, bool gradients = true) {
  ProjectedCrossEntropy op;
  op.targets = in.targets;
  op.label_smoothing = c.label_smoothing;
  op.gradients = gradients;
  return op;
}

/// The loss, and what the op writes besides, of a pass without gradients.
double loss_of(const ProjectedCrossEntropy& op, const std::vector<Tensor>& in) {
  Workspace w;
  Tape tape(w.exec, false);
  return values(tape.apply(op, tape.leaf(in[0]), tape.leaf(in[1]), tape.leaf(in[2])).value())[0];
}

class CrossEntropy : public ::testing::TestWithParam<Case> {};

TEST_P(CrossEntropy, GradientsAreRight) {
  const Inputs in(GetParam(), DType::f64);
  check_gradients(function_of<3>(op_of(GetParam(), in)), in.tensors);
}

TEST_P(CrossEntropy, EqualsTheComposition) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Inputs in(GetParam(), dtype);
    expect_same(function_of<3>(op_of(GetParam(), in)),
                function_of<3>(NaiveCrossEntropy{in.targets, GetParam().label_smoothing}), in.tensors,
                dtype == DType::f64 ? 1e-12 : 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CrossEntropy,
                         ::testing::Values(Case{5, 3, 7, true, 0}, Case{5, 3, 7, true, 0.1},
                                           Case{4, 2, 17, false, 0.1}, Case{3, 4, 1, true, 0.1},
                                           Case{1, 1, 2, false, 1}));

TEST(CrossEntropyTest, BlocksOfTokensAndTilesOfWordsJoin) {
  for (const auto& [tokens, words] :
       {std::pair{31, 513}, {32, 512}, {33, 1025}, {511, 37}, {513, 1100}, {1056, 600}}) {
    const Case c{tokens, 8, words, tokens % 2 == 0, 0.1};
    const Inputs in(c, DType::f64);
    expect_same(function_of<3>(op_of(c, in)),
                function_of<3>(NaiveCrossEntropy{in.targets, c.label_smoothing}), in.tensors, 1e-11);
  }
}

TEST(CrossEntropyTest, GradientsAreRightAcrossTiles) {
  const Case c{2, 1, 515, true, 0.1};
  const Inputs in(c, DType::f64);
  check_gradients(function_of<3>(op_of(c, in)), in.tensors);
}

/// The softmax of the first tile is put right by each larger maximum that follows, and by far.
TEST(CrossEntropyTest, LargerLogitsMayComeLast) {
  Arena arena;
  const Tensor x = arena.zeros({1, 1}, DType::f64), weight = arena.zeros({1100, 1}, DType::f64);
  *x.as<double>() = 1;
  const auto z = weight.span<double>();
  z[3] = 700;
  z[600] = 1000;
  z[1099] = 1000;
  ProjectedCrossEntropy op;
  op.targets = ids(arena, {600});
  op.gradients = false;
  const Tensor predictions = arena.tensor({1}, DType::i32);
  op.predictions = predictions;
  EXPECT_NEAR(loss_of(op, {x, weight, Tensor{nullptr, {}, DType::f64}}), std::log(2.0), 1e-12);
  EXPECT_EQ(predictions.as<std::int32_t>()[0], 600);
}

TEST(CrossEntropyTest, HasTheSameBitsOnAnyNumberOfThreads) {
  const Case c{300, 16, 101, true, 0.1};
  const Inputs in(c, DType::f32);
  expect_thread_invariant(function_of<3>(op_of(c, in)), in.tensors);
}

TEST(CrossEntropyTest, TheLossIsTheSameWithAndWithoutGradients) {
  const Case c{300, 16, 101, true, 0.1};
  const Inputs in(c, DType::f32);
  EXPECT_EQ(loss_of(op_of(c, in, false), in.tensors), run(function_of<3>(op_of(c, in)), in.tensors).y[0]);
}

TEST(CrossEntropyTest, AgreesWithPyTorch) {
  // import torch; torch.set_default_dtype(torch.float64); x = torch.tensor([[1., 2.], [-1., .5], [0., -2.]])
  // w = torch.tensor([[1., 0.], [0., 1.], [1., -1.], [-2., .5]]); b = torch.tensor([.1, -.2, .3, 0.])
  // for e in (0, .1): print(torch.nn.CrossEntropyLoss(reduction='sum', label_smoothing=e)(x @ w.T + b,
  // torch.tensor([1, 3, 0])))
  Arena arena;
  const auto tensor = [&](Shape shape, std::vector<double> from) {
    const Tensor t = arena.tensor(shape, DType::f64);
    std::copy(from.begin(), from.end(), t.as<double>());
    return t;
  };
  const std::vector<Tensor> in{tensor({3, 2}, {1, 2, -1, 0.5, 0, -2}),
                               tensor({4, 2}, {1, 0, 0, 1, 1, -1, -2, 0.5}),
                               tensor({4}, {0.1, -0.2, 0.3, 0})};
  ProjectedCrossEntropy op;
  op.targets = ids(arena, {1, 3, 0});
  EXPECT_NEAR(loss_of(op, in), 3.0380437873519917, 1e-12);
  op.label_smoothing = 0.1;
  EXPECT_NEAR(loss_of(op, in), 3.4317937873519915, 1e-12);
}

TEST(CrossEntropyTest, GivesTheUnsmoothedLossOfEachToken) {
  const Case c{200, 4, 11, true, 0.1};
  const Inputs in(c, DType::f64);
  Arena arena;
  ProjectedCrossEntropy op = op_of(c, in, false);
  op.token_loss = arena.tensor({c.tokens}, DType::f64);
  loss_of(op, in.tensors);
  const NaiveCrossEntropy naive{in.targets, 0};
  for (std::int64_t n = 0; n < c.tokens; ++n) {
    const auto log_p = naive.log_probabilities(in.tensors[0], in.tensors[1], in.tensors[2], n);
    EXPECT_NEAR(op.token_loss.as<double>()[n],
                -log_p[static_cast<std::size_t>(in.targets.as<std::int32_t>()[n])], 1e-12);
  }
}

TEST(CrossEntropyTest, PredictsTheSmallestIdAtTies) {
  Arena arena;
  const Tensor x = arena.tensor({3, 1}, DType::f32), weight = arena.tensor({600, 1}, DType::f32);
  const std::vector<float> features{1, -1, 0};
  std::copy(features.begin(), features.end(), x.as<float>());
  std::fill_n(weight.as<float>(), 600, 0.0F);
  weight.as<float>()[300] = weight.as<float>()[599] = 2;
  weight.as<float>()[70] = weight.as<float>()[71] = -2;
  ProjectedCrossEntropy op;
  op.targets = ids(arena, {0, 0, 0});
  op.predictions = ids(arena, {-1, -1, -1});
  loss_of(op, {x, weight, {}});
  EXPECT_THAT(op.predictions.span<std::int32_t>(), ElementsAre(300, 70, 0));
}

TEST(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  Arena arena;
  const Tensor x = arena.tensor({1, 1}, DType::f32), weight = arena.tensor({3, 1}, DType::f32);
  *x.as<float>() = 1000;
  for (int j = 0; j < 3; ++j) weight.as<float>()[j] = static_cast<float>(j);
  ProjectedCrossEntropy op;
  op.targets = ids(arena, {0});
  EXPECT_EQ(loss_of(op, {x, weight, {}}), 2000);
}

TEST(CrossEntropyTest, NonFiniteInputsStayVisible) {
  const Case c{3, 2, 5, true, 0.1};
  Inputs in(c, DType::f32);
  in.tensors[0].as<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  Arena arena;
  ProjectedCrossEntropy op = op_of(c, in);
  op.predictions = arena.tensor({3}, DType::i32);
  const Result result = run(function_of<3>(op), in.tensors);
  EXPECT_TRUE(std::isnan(result.y[0]));
  EXPECT_TRUE(std::isnan(result.gradients[1][0]));
  EXPECT_EQ(op.predictions.as<std::int32_t>()[1], 0);
}

TEST(CrossEntropyTest, NoTokensGiveZero) {
  const Case c{0, 2, 5, true, 0.1};
  const Inputs in(c, DType::f32);
  const Result result = run(function_of<3>(op_of(c, in)), in.tensors);
  EXPECT_EQ(result.y, std::vector<double>{0});
  EXPECT_EQ(result.gradients[1], std::vector<double>(10, 0.0));
}

TEST(CrossEntropyTest, NamesWhatDoesNotFit) {
  const Case c{3, 2, 5, true, 0};
  const Inputs in(c, DType::f64);
  Arena arena;
  const auto message = [&](const ProjectedCrossEntropy& op, const std::vector<Tensor>& tensors) {
    return error_of([&] { loss_of(op, tensors); });
  };
  ProjectedCrossEntropy op = op_of(c, in);
  EXPECT_EQ(message(op, {in.tensors[0], arena.zeros({5, 3}, DType::f64), in.tensors[2]}),
            "cross_entropy: x [3, 2] and weight [5, 3], expected [N, d] and [V, d]");
  EXPECT_EQ(message(op, {in.tensors[0], in.tensors[1], arena.zeros({4}, DType::f64)}),
            "cross_entropy: bias [4], expected [5]");
  op.targets = ids(arena, {0, 1});
  EXPECT_EQ(message(op, in.tensors), "cross_entropy: targets i32[2], expected i32[3]");
  op.targets = ids(arena, {0, 5, 1});
  EXPECT_EQ(message(op, in.tensors), "cross_entropy: target 5 of token 1, expected 0 to 4");
  op.targets = ids(arena, {0, 4, -1});
  EXPECT_EQ(message(op, in.tensors), "cross_entropy: target -1 of token 2, expected 0 to 4");
  op = op_of(c, in);
  op.label_smoothing = 1.5;
  EXPECT_EQ(message(op, in.tensors), "cross_entropy: label_smoothing 1.5, expected 0 to 1");
  op = op_of(c, in);
  op.token_loss = arena.zeros({3}, DType::f32);
  EXPECT_EQ(message(op, in.tensors), "cross_entropy: token_loss f32[3], expected f64[3]");
  op = op_of(c, in);
  op.predictions = arena.zeros({2}, DType::i32);
  EXPECT_EQ(message(op, in.tensors), "cross_entropy: predictions i32[2], expected i32[3]");
  EXPECT_EQ(error_of([&] { run(function_of<3>(op_of(c, in, false)), in.tensors); }),
            "cross_entropy: backward of an op that was made without gradients");
}

}  // namespace
}  // namespace polyhead::ops
