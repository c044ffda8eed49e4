#pragma once

#include "polyhead/data/corpus.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/text/pipeline.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/config.h"

namespace polyhead::train {

/// Which pairs are left out of training.
data::Filter training_filter(const Config& config);

/// What the training text becomes; the text itself is needed no longer.
struct TrainingData {
  text::TextPipeline pipeline;
  data::ParallelCorpus corpus;
};
/// The tokenizers are those of the checkpoint that the run starts from, else learnt from the training text.
TrainingData load_training_data(const Config& config, const Checkpoint* from);

/// A model for these tokenizers with the initial values that the configuration's seed gives. Throws Error when there is
/// no memory to train it.
nn::Transformer make_model(const Config& config, const text::TextPipeline& pipeline);

}  // namespace polyhead::train
