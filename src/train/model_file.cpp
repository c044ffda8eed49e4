#include "polyhead/train/model_file.h"

#include <algorithm>
#include <filesystem>

#include "polyhead/config/yaml.h"
#include "polyhead/train/head_gates.h"
#include "polyhead/train/run_folder.h"
#include "trainer_state.h"

namespace polyhead::train {

Config config_of(const Checkpoint& checkpoint, const std::string& path) {
  try {
    return config::parse<Config>(checkpoint.config, path + ": /config");
  } catch (const Error& error) {
    throw FileError(error.what());
  }
}

OpenedCheckpoint open_checkpoint(const std::string& run_or_checkpoint) {
  if (!std::filesystem::is_directory(run_or_checkpoint))
    return {run_or_checkpoint, read_checkpoint(run_or_checkpoint), ""};
  const std::string folder = RunFolder(run_or_checkpoint).checkpoints();
  LatestCheckpoint latest = latest_valid_checkpoint(folder);
  require<FileError>(latest.checkpoint || !latest.skipped.empty(), run_or_checkpoint, ": no checkpoint in ",
                     folder, ", expected step-*.h5");
  require<FileError>(latest.checkpoint.has_value(), latest.skipped.empty() ? "" : latest.skipped.front());
  OpenedCheckpoint opened{latest.path, std::move(*latest.checkpoint),
                          latest.skipped.empty() ? "" : latest.skipped.front()};
  const TrainerState state = TrainerState::parse(opened.checkpoint.state, opened.path);
  for (const TrainerState::Scored& best : state.best) {
    const std::string path = checkpoint_path(folder, best.step);
    if (path == opened.path) break;
    if (!std::filesystem::exists(path)) continue;
    try {
      opened.checkpoint = read_checkpoint(path);
      opened.path = path;
      break;
    } catch (const FileError& error) {
      opened.damaged += concat(opened.damaged.empty() ? "" : "; ", error.what());
    }
  }
  if (!opened.damaged.empty()) opened.damaged += concat("; taking ", opened.path, " instead");
  return opened;
}

std::vector<NamedArray> arrays_of(const nn::ParameterStore& store, const Tensor& slab) {
  std::vector<NamedArray> arrays;
  for (const nn::Parameter& p : store.parameters())
    arrays.push_back({p.path, p.shape, nn::ParameterStore::view(p, slab).span<const float>()});
  return arrays;
}

void fill_slab(const nn::ParameterStore& store, std::span<const NamedArray> arrays, const Tensor& slab,
               const std::string& path, std::string_view optional) {
  for (const nn::Parameter& p : store.parameters()) {
    const NamedArray* array = find(arrays, p.path);
    if (!array && !optional.empty() && p.path.ends_with(optional)) continue;
    require<FileError>(array != nullptr, path, ": no parameter ", p.path, ", expected one of shape ",
                       p.shape);
    require<FileError>(array->shape == p.shape, path, ": parameter ", p.path, " of shape ", array->shape,
                       ", expected ", p.shape);
    std::copy(array->values.begin(), array->values.end(), nn::ParameterStore::view(p, slab).as<float>());
  }
  for (const NamedArray& array : arrays)
    require<FileError>(std::any_of(store.parameters().begin(), store.parameters().end(),
                                   [&](const nn::Parameter& p) { return p.path == array.path; }),
                       path, ": parameter ", array.path, " is unknown to the configured model");
}

LoadedModel load_model(const std::string& run_or_checkpoint) {
  const auto [path, checkpoint, damaged] = open_checkpoint(run_or_checkpoint);
  LoadedModel loaded{.path = path,
                     .config = config_of(checkpoint, path),
                     .pipeline = text::TextPipeline::deserialize(checkpoint.vocabulary),
                     .model = nullptr,
                     .step = checkpoint.step,
                     .damaged = damaged};
  loaded.model = std::make_unique<nn::Transformer>(loaded.config.model, loaded.pipeline.source().size(),
                                                   loaded.pipeline.target().size());
  if (loaded.config.training.head_gates.lambda > 0) HeadGates::declare(*loaded.model);
  nn::ParameterStore& store = loaded.model->parameters();
  store.allocate(DType::f32);
  fill_slab(store, checkpoint.ema.empty() ? checkpoint.parameters : checkpoint.ema, store.slab(), path);
  HeadGates(*loaded.model).fold();
  return loaded;
}

}  // namespace polyhead::train
