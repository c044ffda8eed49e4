#include <gtest/gtest.h>

#include "polyhead/decode/translate.h"
#include "toy_model.h"

namespace polyhead::decode {
namespace {

/// Steps two hypotheses of a sentence through the cache, one of which becomes a copy of the other half-way.
void compare_cached_and_full(DType dtype, nn::Norm norm, nn::Positions positions, double tolerance) {
  nn::ModelConfig config = toy_config();
  config.norm = norm;
  config.positions = positions;
  const nn::Transformer model = toy_model(11, dtype, 2, config);
  const std::vector<std::int32_t> source{5, 9, 4, 6, eos_id};
  Workspace workspace;
  Tape tape(workspace.exec, false);
  const nn::Context context{tape, model.parameters()};
  const Tensor source_ids = workspace.activations.tensor({5}, DType::i32);
  std::copy(source.begin(), source.end(), source_ids.as<std::int32_t>());
  const Segment whole{0, 5};
  const Var memory = model.encode(context, {source_ids, {{&whole, 1}, 0}});
  nn::DecoderState state = model.start(context, memory, 2, 12);
  const std::vector<Segment> sources{whole, whole};
  const std::vector<std::int32_t> slots{1, 0};
  Sentences prefixes{{bos_id}, {bos_id}};
  for (std::int32_t step = 0; step < 12; ++step) {
    const std::vector<std::int32_t> ids{prefixes[0].back(), prefixes[1].back()};
    const Tensor rows =
        model.log_probabilities(context, model.step(context, ids, slots, {sources, 0}, state)).value();
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<double> expected = next_log_probabilities(model, source, prefixes[i]);
      dispatch(dtype, [&]<class T>() {
        for (std::size_t v = 0; v < expected.size(); ++v)
          EXPECT_NEAR(rows.as<T>()[i * expected.size() + v], expected[v],
                      tolerance * std::max(1.0, -expected[v]))
              << "step " << step;
      });
    }
    if (step == 5) {
      state.copy_slot(1, 0);
      prefixes[1] = prefixes[0];
    }
    prefixes[0].push_back(3 + step % 8);
    prefixes[1].push_back(10 - step % 7);
  }
}

TEST(Cache, CachedAndFullDecodingAgreeAtEveryStep) {
  for (const nn::Norm norm : {nn::Norm::pre, nn::Norm::post})
    for (const nn::Positions positions : {nn::Positions::sinusoidal, nn::Positions::learned}) {
      compare_cached_and_full(DType::f64, norm, positions, 1e-11);
      compare_cached_and_full(DType::f32, norm, positions, 1e-5);
    }
}

}  // namespace
}  // namespace polyhead::decode
