#include "polyhead/train/model_file.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "polyhead/config/yaml.h"
#include "polyhead/train/head_gates.h"
#include "polyhead/train/run_folder.h"
#include "trainer_state.h"

namespace polyhead::train {

namespace {

/// The first line of what is wrong with a checkpoint's content.
FileError unusable(const std::string& path, const char* part, const Error& error) {
  const std::string message = error.what();
  return FileError(concat(path, ": ", part, message.substr(0, message.find('\n'))));
}

/// Throws unless `arrays` are those of the store, apart from parameters whose path ends with `optional`.
void require_arrays(const nn::ParameterStore& store, std::span<const NamedArray> arrays,
                    const std::string& path, std::string_view optional) {
  std::map<std::string_view, const NamedArray*> left;
  for (const NamedArray& array : arrays) left.emplace(array.path, &array);
  for (const nn::Parameter& p : store.parameters()) {
    const auto found = left.find(p.path);
    if (found == left.end() && !optional.empty() && p.path.ends_with(optional)) continue;
    require<FileError>(found != left.end(), path, ": no parameter ", p.path, ", expected one of shape ",
                       p.shape);
    require<FileError>(found->second->shape == p.shape, path, ": parameter ", p.path, " of shape ",
                       found->second->shape, ", expected ", p.shape);
    left.erase(found);
  }
  require<FileError>(left.empty(), path, ": parameter ", left.empty() ? "" : left.begin()->first,
                     " is unknown to the configured model");
}

const std::vector<NamedArray>& weights_of(const Checkpoint& checkpoint) {
  return checkpoint.ema.empty() ? checkpoint.parameters : checkpoint.ema;
}

/// The configured model, its parameters without memory.
std::unique_ptr<nn::Transformer> declared_model(const Config& config, const text::TextPipeline& pipeline) {
  auto model =
      std::make_unique<nn::Transformer>(config.model, pipeline.source().size(), pipeline.target().size());
  if (config.training.head_gates.lambda > 0) HeadGates::declare(*model);
  return model;
}

}  // namespace

Config config_of(const Checkpoint& checkpoint, const std::string& path) {
  try {
    return config::parse<Config>(checkpoint.config, "/config");
  } catch (const Error& error) {
    throw unusable(path, "", error);
  }
}

text::TextPipeline pipeline_of(const Checkpoint& checkpoint) {
  try {
    return text::TextPipeline::deserialize(checkpoint.vocabulary);
  } catch (const Error& error) {
    throw unusable(checkpoint.path, "/vocabulary: ", error);
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
  const TrainerState state = state_of(opened.checkpoint);
  for (const TrainerState::Scored& best : state.best) {
    const std::string path = checkpoint_path(folder, best.step);
    if (path == opened.path) break;
    if (!std::filesystem::exists(path)) continue;
    try {
      opened.checkpoint = read_checkpoint(CheckpointFile{best.step, path});
      opened.path = path;
      break;
    } catch (const DamagedCheckpoint& error) {
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
  require_arrays(store, arrays, path, optional);
  for (const nn::Parameter& p : store.parameters())
    if (const NamedArray* array = find(arrays, p.path))
      std::copy(array->values.begin(), array->values.end(), nn::ParameterStore::view(p, slab).as<float>());
}

LoadedModel model_of(const Checkpoint& checkpoint) {
  const std::string& path = checkpoint.path;
  LoadedModel loaded{.path = path,
                     .config = config_of(checkpoint, path),
                     .pipeline = pipeline_of(checkpoint),
                     .model = nullptr,
                     .step = checkpoint.step,
                     .damaged = ""};
  try {
    loaded.model = declared_model(loaded.config, loaded.pipeline);
  } catch (const Error& error) {
    throw unusable(path, "/config: ", error);
  }
  nn::ParameterStore& store = loaded.model->parameters();
  require_arrays(store, weights_of(checkpoint), path, "");
  store.allocate(DType::f32);
  fill_slab(store, weights_of(checkpoint), store.slab(), path);
  HeadGates(*loaded.model).fold();
  return loaded;
}

LoadedModel load_model(const std::string& run_or_checkpoint) {
  const OpenedCheckpoint opened = open_checkpoint(run_or_checkpoint);
  LoadedModel loaded = model_of(opened.checkpoint);
  loaded.damaged = opened.damaged;
  return loaded;
}

}  // namespace polyhead::train
