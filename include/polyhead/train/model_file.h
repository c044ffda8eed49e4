#pragma once

#include <memory>
#include <string>

#include "polyhead/nn/transformer.h"
#include "polyhead/text/pipeline.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/config.h"

namespace polyhead::train {

/// A trained model with all that using it takes.
struct LoadedModel {
  std::string path;  ///< of the checkpoint
  Config config;
  text::TextPipeline pipeline;
  std::unique_ptr<nn::Transformer> model;
  std::int64_t step = 0;
  std::string damaged;  ///< see OpenedCheckpoint
};

/// The configuration inside a checkpoint; `path` names it in messages. Throws FileError.
Config config_of(const Checkpoint& checkpoint, const std::string& path);
/// The tokenizers inside a checkpoint. Throws FileError.
text::TextPipeline pipeline_of(const Checkpoint& checkpoint);

/// A checkpoint that was read.
struct OpenedCheckpoint {
  std::string path;
  Checkpoint checkpoint;
  /// "": it is the one that was asked for. Else what is wrong with others, and that this one is taken instead.
  std::string damaged;
};
/// Reads the checkpoint that a run folder or a checkpoint's path stands for: of a run the best by `training.best_metric`, as
/// the newest that is not damaged knows it, else the next best that is kept, else that newest one.
/// Throws FileError when there is none, and when one cannot be read for another reason than damage.
OpenedCheckpoint open_checkpoint(const std::string& run_or_checkpoint);

/// The model of a checkpoint, as load_model() gives it. No memory is taken for weights that the checkpoint does not have.
LoadedModel model_of(const Checkpoint& checkpoint);

/// Reads a model for use. Its weights are the moving average where training kept one; learned gates of heads are folded
/// into W^O.
/// Throws FileError when the file cannot be used; its content must fit its own configuration.
LoadedModel load_model(const std::string& run_or_checkpoint);

/// The arrays of a slab of the store's layout, by parameter path; views into `slab`, which is f32.
std::vector<NamedArray> arrays_of(const nn::ParameterStore& store, const Tensor& slab);
/// Fills a slab (f32) of the store's layout. Throws FileError naming `path` when an array is missing, has another shape,
/// or is unknown. Parameters whose path ends with `optional`, where that is given, keep their values without an array.
void fill_slab(const nn::ParameterStore& store, std::span<const NamedArray> arrays, const Tensor& slab,
               const std::string& path, std::string_view optional = {});

}  // namespace polyhead::train
