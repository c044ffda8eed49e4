#include <gtest/gtest.h>

#include "support/golden_model.h"

namespace polyhead::nn {
namespace {

using namespace polyhead::testing;

/// Layers and models against PyTorch's values and gradients, in f64 and f32.
class Goldens : public ::testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
};

TEST_P(Goldens, EncoderLayer) {
  const Golden golden("golden_layers.h5");
  for (const std::string group : {"encoder_pre_relu", "encoder_pre_swish", "encoder_post_gelu"}) {
    ParameterStore store;
    const EncoderLayer layer(store.root(), golden_layer_config(golden, group));
    fill_parameters(golden, group, dtype(), store);
    const Slab gradients({store.slab_size()}, dtype());
    const std::vector<Segment> spans = segments_of_lengths(golden.values(group + "/lengths"));
    Workspace w;
    Tape tape(w.exec, true);
    const Context context{tape, store, gradients.tensor()};
    const Var x = tape.variable(golden.tensor(w.activations, group + "/x", dtype()));
    const Var y = layer(context, x, {spans, 0});
    expect_close(values(y.value()), golden.values(group + "/y"), dtype(), group + ": y");
    tape.backward(y, golden.tensor(w.activations, group + "/dy", dtype()));
    expect_close(values(x.grad()), golden.values(group + "/gradients/x"), dtype(), group + ": gradient of x");
    expect_gradients(golden, group, store, gradients.tensor());
  }
}

TEST_P(Goldens, DecoderLayer) {
  const Golden golden("golden_layers.h5");
  for (const std::string group : {"decoder_pre_relu", "decoder_pre_swish", "decoder_post_gelu"}) {
    ParameterStore store;
    const DecoderLayer layer(store.root(), golden_layer_config(golden, group));
    fill_parameters(golden, group, dtype(), store);
    const Slab gradients({store.slab_size()}, dtype());
    const std::vector<Segment> targets = segments_of_lengths(golden.values(group + "/lengths")),
                               sources = segments_of_lengths(golden.values(group + "/memory_lengths"));
    Workspace w;
    Tape tape(w.exec, true);
    const Context context{tape, store, gradients.tensor()};
    const Var x = tape.variable(golden.tensor(w.activations, group + "/x", dtype())),
              memory = tape.variable(golden.tensor(w.activations, group + "/memory", dtype()));
    const Var y = layer(context, x, {targets, 0}, memory, {sources, 0});
    expect_close(values(y.value()), golden.values(group + "/y"), dtype(), group + ": y");
    tape.backward(y, golden.tensor(w.activations, group + "/dy", dtype()));
    expect_close(values(x.grad()), golden.values(group + "/gradients/x"), dtype(), group + ": gradient of x");
    expect_close(values(memory.grad()), golden.values(group + "/gradients/memory"), dtype(),
                 group + ": gradient of memory");
    expect_gradients(golden, group, store, gradients.tensor());
  }
}

TEST_P(Goldens, Model) {
  const Golden golden("golden_models.h5");
  for (const std::string group :
       {"tied_all_post", "tied_target_pre", "untied_post", "learned_positions_pre", "no_positions_uneven"}) {
    const Transformer model = golden_model(golden, group, dtype());
    const double smoothing = golden.number(group, "label_smoothing");
    for (const std::string part : {"/batches/0", "/batches/1"}) {
      const std::string at = group + part;
      Workspace w;
      const GoldenBatch batch(golden, at, w.activations);
      Tape inference(w.exec, false);
      const Context context{inference, model.parameters()};
      const Var features =
          model.decode(context, batch.target, model.encode(context, batch.source), batch.source.segments);
      expect_close(values(model.log_probabilities(context, features).value()),
                   golden.values(at + "/log_probabilities"), dtype(), at + ": log-probabilities");
      const Slab gradients({model.parameters().slab_size()}, dtype());
      const double loss = loss_and_gradients(model, batch, smoothing, gradients.tensor());
      expect_close({loss}, golden.values(at + "/loss"), dtype(), at + ": loss");
      expect_gradients(golden, at, model.parameters(), gradients.tensor());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Goldens, ::testing::Values(DType::f64, DType::f32),
                         [](const auto& instance) { return name(instance.param); });

}  // namespace
}  // namespace polyhead::nn
