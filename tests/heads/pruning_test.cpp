#include "polyhead/heads/pruning.h"

#include <gmock/gmock.h>

#include "models.h"
#include "polyhead/config/yaml.h"
#include "polyhead/heads/masking.h"
#include "polyhead/train/model_file.h"

namespace polyhead::heads {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = nn::AttentionKind;

train::Checkpoint checkpoint_of(const nn::Transformer& model) {
  train::Config config;
  config.model = model.config();
  config.training.max_steps = 1;
  train::Checkpoint checkpoint;
  checkpoint.parameters = train::arrays_of(model.parameters(), model.parameters().slab());
  checkpoint.config = config::dump(config);
  checkpoint.vocabulary = "bytes";
  checkpoint.step = 7;
  return checkpoint;
}

nn::Transformer model_of(const train::Checkpoint& checkpoint, std::int64_t vocabulary) {
  nn::Transformer model(train::config_of(checkpoint, "test").model, vocabulary, vocabulary);
  model.parameters().allocate(DType::f32);
  train::fill_slab(model.parameters(), checkpoint.parameters, model.parameters().slab(), "test");
  return model;
}

/// A model with a value_dim of its own and biases that are not zero.
nn::Transformer original() {
  nn::ModelConfig config = decode::toy_config();
  config.value_dim = 5;
  config.head_dim = 6;
  config.heads = 3;
  nn::Transformer model = decode::toy_model(20, DType::f32, 3, config);
  RandomStream random(RngKey{3});
  for (const nn::Parameter& p : model.parameters().parameters())
    if (!p.decays())
      for (float& x : model.parameters().value(p).span<float>())
        x += static_cast<float>(0.2 * random.uniform());
  return model;
}

const std::vector<Head> removed_heads{
    {{Kind::encoder, 0}, 1}, {{Kind::encoder, 1}, 0}, {{Kind::encoder, 1}, 2}, {{Kind::decoder, 0}, 0},
    {{Kind::decoder, 0}, 1}, {{Kind::decoder, 0}, 2}, {{Kind::cross, 1}, 2}};

TEST(Prune, ComputesWhatMaskingTheHeadsDoes) {
  const nn::Transformer whole = original();
  const train::Checkpoint before = checkpoint_of(whole), pruned = prune(before, "test", removed_heads);
  const nn::Transformer smaller = model_of(pruned, 20);
  EXPECT_LT(smaller.parameters().count(), whole.parameters().count());
  const RandomPairs pairs(12, 20, 9);
  const Masking masking(whole, MaskMethod::zero);
  const auto masked = decode::score(whole, pairs.ids, 1, {}, masking.hook(removed_heads)),
             small = decode::score(smaller, pairs.ids, 1), all = decode::score(whole, pairs.ids, 1);
  for (std::size_t i = 0; i < masked.size(); ++i)
    for (std::size_t t = 0; t < masked[i].tokens.size(); ++t) {
      EXPECT_NEAR(small[i].tokens[t], masked[i].tokens[t],
                  1e-5 * std::max(1.0, std::abs(masked[i].tokens[t])));
      EXPECT_GT(std::abs(small[i].tokens[t] - all[i].tokens[t]), 1e-5);
    }
  const auto translate = [&](const nn::Transformer& model, const decode::AttentionHook& hook) {
    std::vector<std::vector<std::int32_t>> ids;
    for (const auto& found : decode::translate(model, decode::views(pairs.sources), {}, 1, {}, nullptr, hook))
      ids.push_back(found.front().ids);
    return ids;
  };
  EXPECT_EQ(translate(smaller, {}), translate(whole, masking.hook(removed_heads)));
}

TEST(Prune, SaysInItsConfigurationWhatIsLeft) {
  const train::Checkpoint pruned = prune(checkpoint_of(original()), "test", removed_heads);
  const nn::ModelConfig model = train::config_of(pruned, "test").model;
  EXPECT_THAT((*model.heads.lists())[0], ElementsAre(2, 1));
  EXPECT_THAT((*model.heads.lists())[1], ElementsAre(0, 3));
  EXPECT_THAT((*model.heads.lists())[2], ElementsAre(3, 2));
  EXPECT_EQ(model.head_dim, 6);
  EXPECT_EQ(model.value_dim, 5);
  EXPECT_EQ(pruned.step, 7);
  EXPECT_EQ(pruned.vocabulary, "bytes");
  EXPECT_THAT(pruned.state, HasSubstr("\"encoder.0.1\""));
  EXPECT_TRUE(pruned.first_moment.empty());
  EXPECT_EQ(train::find(pruned.parameters, "decoder/layers/0/self_attention/query/weight"), nullptr);
  EXPECT_EQ(train::find(pruned.parameters, "decoder/layers/0/self_attention/output/bias")->shape,
            (Shape{16}));
  // A pruned checkpoint is pruned as any other.
  const train::Checkpoint again = prune(pruned, "test", std::vector<Head>{{{Kind::encoder, 1}, 0}});
  EXPECT_THAT((*train::config_of(again, "test").model.heads.lists())[0], ElementsAre(2, 0));
}

TEST(Prune, FoldsLearnedGatesIntoTheOutputAndFindsThoseThatAreClosed) {
  const nn::Transformer whole = original();
  train::Checkpoint before = checkpoint_of(whole);
  const std::vector<float> gates{-9, 0, 9};  // closed, half open, open
  for (const Kind kind : {Kind::encoder, Kind::cross})
    before.parameters.push_back({train::gates_path({kind, 0}), {3}, gates});
  const std::vector<Head> closed = closed_heads(before, "test");
  EXPECT_THAT(closed, ElementsAre(Head{{Kind::encoder, 0}, 0}, Head{{Kind::cross, 0}, 0}));
  const train::Checkpoint pruned = prune(before, "test", closed);
  const nn::Transformer smaller = model_of(pruned, 20);
  const RandomPairs pairs(5, 20, 9);
  const auto gated =
      decode::score(whole, pairs.ids, 1, {}, [&](const nn::AttentionCall& call, const decode::QueryRows&) {
        if (call.site.layer == 1 || call.site.kind == Kind::decoder) return nn::AttentionInputs{};
        const Tensor values = call.tape.exec().activations.tensor({1, 3}, DType::f32);
        const float of_head[] = {0, 0.5f, 1};
        std::copy(std::begin(of_head), std::end(of_head), values.as<float>());
        return nn::AttentionInputs{.gates = call.tape.leaf(values)};
      });
  const auto folded = decode::score(smaller, pairs.ids, 1);
  for (std::size_t i = 0; i < gated.size(); ++i)
    EXPECT_NEAR(folded[i].log_probability, gated[i].log_probability,
                1e-5 * std::max(1.0, std::abs(gated[i].log_probability)));
  EXPECT_EQ(decode::message_of<Error>([&] { closed_heads(pruned, "test"); }),
            "test: has no learned gates of heads, expected a model trained with training.head_gates");
}

TEST(Orders, AreByFigureAtRandomOrGreedy) {
  const std::vector<Head> heads{
      {{Kind::encoder, 0}, 0}, {{Kind::encoder, 0}, 1}, {{Kind::cross, 0}, 0}, {{Kind::cross, 0}, 1}};
  EXPECT_THAT(ascending(heads, std::vector<double>{3, 1, 1, 0}),
              ElementsAre(heads[3], heads[1], heads[2], heads[0]));
  EXPECT_EQ(random_order(heads, 1, 0), random_order(heads, 1, 0));
  EXPECT_THAT(random_order(heads, 1, 0), ::testing::UnorderedElementsAreArray(heads));
  std::vector<std::vector<Head>> draws;
  for (int draw = 0; draw < 5; ++draw) draws.push_back(random_order(heads, 1, draw));
  EXPECT_NE(draws, std::vector<std::vector<Head>>(5, draws[0]));
  // Heads 0 and 2 are each cheap alone, but not together.
  const auto loss = [&](const std::vector<Head>& removed) {
    const auto has = [&](std::size_t i) {
      return std::find(removed.begin(), removed.end(), heads[i]) != removed.end();
    };
    return (has(0) ? 1. : 0.) + (has(2) ? 2. : 0.) + (has(0) && has(2) ? 10. : 0.) + (has(1) ? 3. : 0.) +
           (has(3) ? 4. : 0.);
  };
  EXPECT_THAT(greedy_order(heads, loss), ElementsAre(heads[0], heads[1], heads[3], heads[2]));
}

}  // namespace
}  // namespace polyhead::heads
