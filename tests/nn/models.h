#pragma once

#include <vector>

#include "polyhead/nn/transformer.h"
#include "support/check_op.h"

/// Small models and batches for the tests of layers.
namespace polyhead::nn {

using Workspace = polyhead::testing::Workspace;

inline ModelConfig tiny_config() {
  ModelConfig c;
  c.encoder_layers = 2;
  c.decoder_layers = 1;
  c.d_model = 8;
  c.heads = 2;
  c.d_ff = 6;
  c.dropout = 0;
  c.max_length = 8;
  return c;
}

/// Of 10 pieces in either language, f64 unless told, all parameters random.
inline Transformer tiny_model(const ModelConfig& config, DType dtype = DType::f64) {
  Transformer model(config, 10, 10);
  ParameterStore& store = model.parameters();
  store.allocate(dtype);
  store.initialise(3);
  Arena arena;
  const std::vector<double> noise =
      testing::values(testing::random_tensor(arena, {store.slab_size()}, DType::f64, 5));
  dispatch(dtype, [&]<class T>() {
    const auto slab = store.slab().span<T>();
    for (std::size_t i = 0; i < slab.size(); ++i) slab[i] += static_cast<T>(0.2 * noise[i]);
  });
  return model;
}

struct Pair {
  std::vector<std::int32_t> source, target;  // each with eos
};
inline const std::vector<Pair> pairs{
    {{3, 4, 5, 2}, {6, 7, 2}}, {{8, 2}, {9, 3, 3, 4, 2}}, {{5, 5, 6, 7, 8, 2}, {2}}};

/// Pairs packed; `first` is the number of the first of them within the update.
struct Batch {
  Workspace room;
  std::vector<Segment> sources, targets;
  TokenBatch source, target;
  Tensor outputs;

  explicit Batch(const std::vector<Pair>& sentences, std::int32_t first = 0) {
    std::vector<std::int32_t> source_ids, inputs, output_ids;
    for (const Pair& pair : sentences) {
      sources.push_back(
          {static_cast<std::int32_t>(source_ids.size()), static_cast<std::int32_t>(pair.source.size())});
      targets.push_back(
          {static_cast<std::int32_t>(inputs.size()), static_cast<std::int32_t>(pair.target.size())});
      source_ids.insert(source_ids.end(), pair.source.begin(), pair.source.end());
      inputs.push_back(1);
      inputs.insert(inputs.end(), pair.target.begin(), pair.target.end() - 1);
      output_ids.insert(output_ids.end(), pair.target.begin(), pair.target.end());
    }
    source = {testing::ids(room.activations, source_ids), {sources, first}};
    target = {testing::ids(room.activations, inputs), {targets, first}};
    outputs = testing::ids(room.activations, output_ids);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
};

struct LossAndGradients {
  double loss;
  std::vector<double> token_loss, gradients;
};

inline LossAndGradients run_batch(const Transformer& model, const Batch& batch, bool training = false) {
  Workspace w;
  w.exec.training = training;
  const Slab gradients({model.parameters().slab_size()}, model.parameters().dtype());
  Tape tape(w.exec, true);
  const Context context{tape, model.parameters(), gradients.tensor()};
  const Tensor token_loss = w.activations.tensor(batch.outputs.shape, model.parameters().dtype());
  const Var loss = model.loss(context, batch.source, batch.target, batch.outputs,
                              {.label_smoothing = 0.1, .token_loss = token_loss});
  tape.backward(loss);
  return {testing::values(loss.value())[0], testing::values(token_loss), testing::values(gradients.tensor())};
}

inline void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(b[i]))) << "element " << i;
}

}  // namespace polyhead::nn
