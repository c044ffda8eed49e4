#include "polyhead/train/training_data.h"

#include "memory.h"
#include "polyhead/core/memory.h"
#include "polyhead/train/head_gates.h"
#include "polyhead/train/model_file.h"

namespace polyhead::train {

data::Filter training_filter(const Config& config) {
  return {.skip_empty = true, .max_length = config.max_pieces()};
}

TrainingData load_training_data(const Config& config, const Checkpoint* from) {
  const data::ParallelText text = data::load_text(config.data, data::Split::train, config.seed);
  text::TextPipeline pipeline =
      from ? pipeline_of(*from)
           : text::TextPipeline::learn(config.tokenizer, config.data.lowercase, text.source, text.target);
  data::ParallelCorpus corpus = data::ParallelCorpus::encode(text, pipeline, training_filter(config));
  return {std::move(pipeline), std::move(corpus)};
}

nn::Transformer make_model(const Config& config, const text::TextPipeline& pipeline) {
  nn::Transformer model(config.model, pipeline.source().size(), pipeline.target().size());
  if (config.training.head_gates.lambda > 0) HeadGates::declare(model);
  // Weights, gradients and two moments, so that what is far too large is refused before it takes memory.
  constexpr std::int64_t bytes_of_a_weight = 4 * sizeof(float);
  require_memory(resident_bytes() + bytes_of_a_weight * model.parameters().slab_size());
  model.parameters().allocate(DType::f32);
  model.parameters().initialise(config.seed);
  HeadGates(model).fill(config.training.head_gates.initial);
  return model;
}

}  // namespace polyhead::train
