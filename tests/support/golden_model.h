#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "polyhead/nn/transformer.h"
#include "support/check_op.h"
#include "support/golden.h"

/// Layers and models of golden_layers.h5 and golden_models.h5.
namespace polyhead::testing {

/// How far a value may be from its reference, by norm: ‖a − b‖ <= relative·‖b‖ + absolute.
struct Tolerance {
  double relative, absolute;
};
inline Tolerance tolerance(DType dtype) {
  return dtype == DType::f64 ? Tolerance{1e-10, 1e-12} : Tolerance{1e-5, 1e-6};
}

inline void expect_close(const std::vector<double>& a, const std::vector<double>& b, DType dtype,
                         const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  const Tolerance t = tolerance(dtype);
  EXPECT_LE(distance(a, b), t.relative * norm(b) + t.absolute) << what << " in " << name(dtype);
}

inline std::vector<Segment> segments_of_lengths(const std::vector<double>& lengths) {
  std::vector<Segment> segments;
  std::int32_t begin = 0;
  for (const double length : lengths) {
    segments.push_back({begin, static_cast<std::int32_t>(length)});
    begin += segments.back().length;
  }
  return segments;
}

/// The value of a setting as its enumeration has it.
template <class E>
E enum_value(const std::string& text) {
  for (const auto& [value, name] : enum_names(E{}))
    if (name == text) return value;
  throw Error("no such setting: " + text);
}

/// The settings that a layer of golden_layers.h5 has.
inline nn::ModelConfig golden_layer_config(const Golden& golden, const std::string& group) {
  const auto number = [&](const char* key) { return static_cast<int>(golden.number(group, key)); };
  nn::ModelConfig c;
  c.d_model = number("d_model");
  c.heads = number("heads");
  c.d_ff = number("d_ff");
  c.activation = enum_value<ops::Activation>(golden.text(group, "activation"));
  c.norm = enum_value<nn::Norm>(golden.text(group, "norm"));
  c.dropout = 0;
  return c;
}

/// The settings that a model of golden_models.h5 has.
inline nn::ModelConfig golden_model_config(const Golden& golden, const std::string& group) {
  const auto number = [&](const char* key) { return static_cast<int>(golden.number(group, key)); };
  nn::ModelConfig c = golden_layer_config(golden, group);
  c.encoder_layers = number("encoder_layers");
  c.decoder_layers = number("decoder_layers");
  c.max_length = number("max_length");
  c.positions = enum_value<nn::Positions>(golden.text(group, "positions"));
  c.tie_embeddings = enum_value<nn::TieEmbeddings>(golden.text(group, "tie_embeddings"));
  return c;
}

/// Gives every parameter its reference value; both sides must have the same parameters.
inline void fill_parameters(const Golden& golden, const std::string& group, DType dtype,
                            nn::ParameterStore& store) {
  store.allocate(dtype);
  ASSERT_EQ(golden.datasets(group + "/parameters").size(), store.parameters().size());
  Arena arena;
  for (const nn::Parameter& p : store.parameters())
    copy(golden.tensor(arena, group + "/parameters/" + p.path, dtype), store.value(p));
}

inline nn::Transformer golden_model(const Golden& golden, const std::string& group, DType dtype) {
  nn::Transformer model(golden_model_config(golden, group),
                        static_cast<std::int64_t>(golden.number(group, "source_vocabulary")),
                        static_cast<std::int64_t>(golden.number(group, "target_vocabulary")));
  fill_parameters(golden, group, dtype, model.parameters());
  return model;
}

inline void expect_gradients(const Golden& golden, const std::string& group, const nn::ParameterStore& store,
                             const Tensor& gradients) {
  for (const nn::Parameter& p : store.parameters())
    expect_close(values(nn::ParameterStore::view(p, gradients)),
                 golden.values(group + "/gradients/" + p.path), gradients.dtype,
                 group + ": gradient of " + p.path);
}

/// One of a model's batches.
struct GoldenBatch {
  std::vector<Segment> sources, targets;
  nn::TokenBatch source, target;
  Tensor outputs;

  GoldenBatch(const Golden& golden, const std::string& group, Arena& arena)
      : sources(segments_of_lengths(golden.values(group + "/source_lengths"))),
        targets(segments_of_lengths(golden.values(group + "/target_lengths"))),
        source{golden.tensor(arena, group + "/source", DType::i32), {sources, 0}},
        target{golden.tensor(arena, group + "/target_input", DType::i32), {targets, 0}},
        outputs(golden.tensor(arena, group + "/target_output", DType::i32)) {}
  GoldenBatch(const GoldenBatch&) = delete;
  GoldenBatch& operator=(const GoldenBatch&) = delete;
};

/// Σ loss of a batch; adds its gradient to the slab `gradients`.
inline double loss_and_gradients(const nn::Transformer& model, const GoldenBatch& batch, double smoothing,
                                 const Tensor& gradients) {
  Workspace w;
  Tape tape(w.exec, true);
  const nn::Context context{tape, model.parameters(), gradients};
  const Var loss =
      model.loss(context, batch.source, batch.target, batch.outputs, {.label_smoothing = smoothing});
  tape.backward(loss);
  return values(loss.value())[0];
}

}  // namespace polyhead::testing
