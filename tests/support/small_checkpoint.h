#pragma once

#include <memory>
#include <string>
#include <vector>

#include "polyhead/config/yaml.h"
#include "polyhead/train/model_file.h"

namespace polyhead::testing {

/// A whole model of a few kilobytes with its tokenizers, and its checkpoint.
struct SmallModel {
  train::Config config;
  text::TextPipeline pipeline;
  std::unique_ptr<nn::Transformer> model;
  train::Checkpoint checkpoint;  ///< its arrays point into `model`
};

inline SmallModel small_model() {
  train::Config config;
  config.model.encoder_layers = config.model.decoder_layers = 1;
  config.model.d_model = config.model.d_ff = 4;
  config.model.heads = 2;
  config.model.max_length = 8;
  config.training.max_steps = 10;
  config.tokenizer.kind = "word";
  const std::vector<std::string> lines{"a b c", "c d"};
  text::TextPipeline pipeline = text::TextPipeline::learn(config.tokenizer, false, lines, lines);
  auto model =
      std::make_unique<nn::Transformer>(config.model, pipeline.source().size(), pipeline.target().size());
  model->parameters().allocate(DType::f32);
  model->parameters().initialise(1);
  train::Checkpoint checkpoint;
  checkpoint.parameters = train::arrays_of(model->parameters(), model->parameters().slab());
  checkpoint.step = 7;
  checkpoint.epoch = 1;
  checkpoint.config = config::dump(config);
  checkpoint.vocabulary = pipeline.serialize();
  return {config, std::move(pipeline), std::move(model), std::move(checkpoint)};
}

}  // namespace polyhead::testing
