#include "polyhead/experiment/workload.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "controls.h"
#include "polyhead/config/yaml.h"
#include "polyhead/nn/flops.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/updater.h"

namespace polyhead::experiment {
namespace {

train::TrainingData load(const train::Config& config) {
  if (!config.training.initial_checkpoint) return train::load_training_data(config, nullptr);
  const train::OpenedCheckpoint from = train::open_checkpoint(*config.training.initial_checkpoint);
  return train::load_training_data(config, &from.checkpoint);
}

}  // namespace

Workload::Workload(const train::Config& config) : data_(load(config)) {
  const data::ParallelCorpus& corpus = data_.corpus;
  for (std::int32_t pair = 0; std::cmp_less(pair, corpus.size()); ++pair)
    ++lengths_[{corpus.source_length(pair), corpus.target_length(pair)}];
  target_tokens_ = corpus.target_tokens();
}

Costs Workload::costs(const nn::ModelConfig& model) const {
  const text::TextPipeline& pipeline = data_.pipeline;
  Costs costs{.parameters = parameters_of(model, pipeline.source().size(), pipeline.target().size())};
  const int encoder = model.total_heads(nn::AttentionKind::encoder),
            decoder = model.total_heads(nn::AttentionKind::decoder),
            cross = model.total_heads(nn::AttentionKind::cross);
  double scores = 0, pairs = 0;
  for (const auto& [length, count] : lengths_) {
    const auto [s, t] = length;
    const auto n = static_cast<double>(count);
    costs.flops_per_token += n * nn::training_flops(model, pipeline.target().size(), s, t).total();
    scores += n * static_cast<double>(encoder * s * s + decoder * t * t + cross * t * s);
    pairs += n;
  }
  costs.flops_per_token /= static_cast<double>(target_tokens_);
  costs.score_bytes = 4 * scores / pairs;
  return costs;
}

std::optional<double> Workload::updates(const train::TrainingConfig& training) const {
  std::optional<double> updates;
  if (training.max_steps) updates = static_cast<double>(*training.max_steps);
  if (training.max_epochs) {
    const double epoch = std::ceil(static_cast<double>(target_tokens_) /
                                   (static_cast<double>(training.batch_tokens) * training.accumulate));
    const double steps = epoch * static_cast<double>(*training.max_epochs);
    updates = std::min(updates.value_or(steps), steps);
  }
  return updates;
}

double Workload::seconds_per_update(const train::Config& config) const {
  nn::Transformer model = train::make_model(config, data_.pipeline);
  train::Updater updater(config, model, 1);
  const auto plan = data::BatchPlan::training(
      data_.corpus, std::int64_t{config.training.batch_tokens} * config.training.accumulate, config.seed, 0);
  double best = 0;
  constexpr int updates = 4;
  for (int i = 0; i < updates; ++i) {
    const std::clock_t begin = std::clock();
    updater.run(data_.corpus, plan[i % plan.size()], i + 1);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (i == 1 || (i > 1 && seconds < best)) best = seconds;
  }
  return best;
}

std::string Workload::key(const train::Config& config) {
  train::Config of_text;
  of_text.data = config.data;
  of_text.tokenizer = config.tokenizer;
  of_text.model.max_length = config.model.max_length;  // leaves out long pairs
  of_text.training.initial_checkpoint = config.training.initial_checkpoint;
  if (config.data.task != "files") of_text.seed = config.seed;
  return config::dump(of_text);
}

const Workload& Workloads::of(const train::Config& config) {
  const std::string key = Workload::key(config);
  const auto found = made_.find(key);
  return found != made_.end() ? found->second : made_.emplace(key, Workload(config)).first->second;
}

}  // namespace polyhead::experiment
