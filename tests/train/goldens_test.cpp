#include <gtest/gtest.h>

#include "polyhead/train/optimizer.h"
#include "support/golden_model.h"

namespace polyhead::train {
namespace {

using namespace polyhead::testing;

/// Ten updates of whole models against PyTorch's, in f64 and f32.
class Goldens : public ::testing::TestWithParam<DType> {};

TEST_P(Goldens, AdamLosses) {
  const DType dtype = GetParam();
  const Golden golden("golden_models.h5");
  for (const std::string group :
       {"tied_all_post", "tied_target_pre", "untied_post", "learned_positions_pre", "no_positions_uneven"}) {
    const nn::Transformer model = golden_model(golden, group, dtype);
    const Shape shape{model.parameters().slab_size()};
    const Slab gradients(shape, dtype), mean(shape, dtype), squares(shape, dtype);
    const Adam adam(AdamConfig{}, {});
    Workspace w;
    const GoldenBatch batches[] = {{golden, group + "/batches/0", w.activations},
                                   {golden, group + "/batches/1", w.activations}};
    std::vector<double> losses;
    for (std::int64_t update = 1; update <= 10; ++update) {
      const GoldenBatch& batch = batches[(update - 1) % 2];
      const auto tokens = static_cast<double>(batch.outputs.size());
      fill_zero(gradients.tensor());
      losses.push_back(
          loss_and_gradients(model, batch, golden.number(group, "label_smoothing"), gradients.tensor()) /
          tokens);
      adam.step({model.parameters().slab(), gradients.tensor(), mean.tensor(), squares.tensor()}, update,
                golden.number(group, "learning_rate"), 1 / tokens, 1);
    }
    const std::vector<double> expected = golden.values(group + "/adam_losses");
    ASSERT_EQ(expected.size(), 10u);
    for (std::size_t i = 0; i < 10; ++i)
      EXPECT_NEAR(losses[i], expected[i], (dtype == DType::f64 ? 1e-9 : 1e-5) * expected[i])
          << group << ", update " << i + 1;
    EXPECT_LT(losses[9], losses[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Goldens, ::testing::Values(DType::f64, DType::f32),
                         [](const auto& instance) { return name(instance.param); });

}  // namespace
}  // namespace polyhead::train
