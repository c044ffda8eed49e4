#pragma once

#include <optional>

#include "polyhead/data/corpus.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/text/pipeline.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/run_folder.h"
#include "polyhead/train/trainer.h"

namespace polyhead::train {

/// Throws FileError when the folder holds a run.
void require_no_run(const RunFolder& folder);

/// The newest checkpoint of a run that goes on; none when there is none that can be read. Throws Error when a setting
/// changed that is neither limit nor interval.
std::optional<Checkpoint> resume_point(const Config& config, const RunFolder& folder, Observer& observer);

/// The checkpoint that training.initial_checkpoint names. Throws Error when the configuration asks for other tokenizers
/// than it has.
Checkpoint initial_checkpoint(const Config& config);

/// Which pairs are left out of training.
data::Filter training_filter(const Config& config);

/// What the training text becomes; the text itself is needed no longer.
struct TrainingData {
  text::TextPipeline pipeline;
  data::ParallelCorpus corpus;
};
/// The tokenizers are those of the checkpoint that the run starts from, else learnt from the training text.
TrainingData load_training_data(const Config& config, const Checkpoint* from);

/// A model for these tokenizers with the initial values that the configuration's seed gives.
nn::Transformer make_model(const Config& config, const text::TextPipeline& pipeline);

}  // namespace polyhead::train
