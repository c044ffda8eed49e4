#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "polyhead/core/rng.h"
#include "polyhead/decode/translate.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/tensor/arena.h"
#include "support/message.h"

namespace polyhead::decode {

using testing::message_of;

struct Workspace {
  Arena activations, scratch;
  Exec exec{activations, scratch, {}, false};
};

inline nn::ModelConfig toy_config() {
  nn::ModelConfig config;
  config.encoder_layers = 2;
  config.decoder_layers = 2;
  config.d_model = 16;
  config.heads = 2;
  config.d_ff = 24;
  config.norm = nn::Norm::pre;
  config.max_length = 40;
  return config;
}

/// Random weights, several times larger than a fresh model's, so that some tokens are far likelier than
/// others; eos is made likely enough that sentences end.
inline nn::Transformer toy_model(std::int64_t vocabulary, DType dtype = DType::f32, double scale = 3,
                                 const nn::ModelConfig& config = toy_config()) {
  nn::Transformer model(config, vocabulary, vocabulary);
  nn::ParameterStore& store = model.parameters();
  store.allocate(dtype);
  store.initialise(7);
  for (const nn::Parameter& p : store.parameters())
    dispatch(dtype, [&]<class T>() {
      for (T& x : store.value(p).span<T>())
        if (p.decays()) x *= static_cast<T>(scale);
    });
  dispatch(dtype, [&]<class T>() { store.value(store.at("output/bias")).as<T>()[eos_id] = T{3}; });
  return model;
}

using Sentences = std::vector<std::vector<std::int32_t>>;

inline std::vector<TokenIds> views(const Sentences& sentences) {
  return {sentences.begin(), sentences.end()};
}

/// Sentences of 1 to `longest` random ids and eos.
inline Sentences random_sentences(int count, std::int32_t vocabulary, int longest, std::uint64_t seed = 1) {
  RandomStream random(RngKey{seed});
  Sentences result;
  for (int i = 0; i < count; ++i) {
    std::vector<std::int32_t> ids(1 + random.below(static_cast<std::uint64_t>(longest)));
    for (std::int32_t& id : ids)
      id = 3 + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary - 3)));
    ids.push_back(eos_id);
    result.push_back(ids);
  }
  return result;
}

/// log p of every id after `prefix` (bos first), from the model run on the whole prefix.
inline std::vector<double> next_log_probabilities(const nn::Transformer& model, TokenIds source,
                                                  const std::vector<std::int32_t>& prefix) {
  static Workspace workspace;
  const ArenaScope activations(workspace.activations);
  Arena& arena = workspace.activations;
  const auto batch = [&](TokenIds ids) {
    const Tensor t = arena.tensor({static_cast<std::int64_t>(ids.size())}, DType::i32);
    std::copy(ids.begin(), ids.end(), t.as<std::int32_t>());
    auto* segment = new (arena.allocate<Segment>()) Segment{0, static_cast<std::int32_t>(ids.size())};
    return nn::TokenBatch{t, {{segment, 1}, 0}};
  };
  Tape tape(workspace.exec, false);
  const nn::Context context{tape, model.parameters()};
  const nn::TokenBatch sources = batch(source);
  const Var features = model.decode(context, batch(prefix), model.encode(context, sources), sources.segments);
  const Tensor rows = model.log_probabilities(context, features).value();
  std::vector<double> result;
  dispatch(rows.dtype, [&]<class T>() {
    const auto last = rows.slice_rows(rows.rows() - 1, 1).span<T>();
    result.assign(last.begin(), last.end());
  });
  return result;
}

/// Greedy search by running the model on the whole prefix at every step.
inline Hypothesis plain_greedy(const nn::Transformer& model, TokenIds source, std::int32_t limit) {
  Hypothesis result;
  std::vector<std::int32_t> prefix{bos_id};
  while (!result.finished && static_cast<std::int32_t>(result.ids.size()) < limit) {
    const std::vector<double> next = next_log_probabilities(model, source, prefix);
    std::int32_t best = 0;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(next.size()); ++id)
      if (id != bos_id && next[static_cast<std::size_t>(id)] > next[static_cast<std::size_t>(best)])
        best = id;
    result.log_probability += next[static_cast<std::size_t>(best)];
    result.ids.push_back(best);
    prefix.push_back(best);
    result.finished = best == eos_id;
  }
  return result;
}

}  // namespace polyhead::decode
