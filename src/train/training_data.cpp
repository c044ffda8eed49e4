#include "polyhead/train/training_data.h"

#include "polyhead/train/head_gates.h"

namespace polyhead::train {

data::Filter training_filter(const Config& config) {
  return {.skip_empty = true, .max_length = config.max_pieces()};
}

TrainingData load_training_data(const Config& config, const Checkpoint* from) {
  const data::ParallelText text = data::load_text(config.data, data::Split::train, config.seed);
  text::TextPipeline pipeline =
      from ? text::TextPipeline::deserialize(from->vocabulary)
           : text::TextPipeline::learn(config.tokenizer, config.data.lowercase, text.source, text.target);
  data::ParallelCorpus corpus = data::ParallelCorpus::encode(text, pipeline, training_filter(config));
  return {std::move(pipeline), std::move(corpus)};
}

nn::Transformer make_model(const Config& config, const text::TextPipeline& pipeline) {
  nn::Transformer model(config.model, pipeline.source().size(), pipeline.target().size());
  if (config.training.head_gates.lambda > 0) HeadGates::declare(model);
  model.parameters().allocate(DType::f32);
  model.parameters().initialise(config.seed);
  HeadGates(model).fill(config.training.head_gates.initial);
  return model;
}

}  // namespace polyhead::train
