#include "polyhead/train/average.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"
#include "polyhead/train/run_folder.h"
#include "trainer_state.h"

namespace polyhead::train {
namespace {

const std::vector<NamedArray>& weights(const Checkpoint& c) { return c.ema.empty() ? c.parameters : c.ema; }

/// Sums of the arrays of several checkpoints, in double.
class Sum {
 public:
  void add(const Checkpoint& checkpoint, const std::string& path, const std::string& first_path) {
    const std::vector<NamedArray>& arrays = weights(checkpoint);
    if (arrays_.empty())
      for (const NamedArray& a : arrays)
        arrays_.push_back({a.path, a.shape, std::vector<double>(a.values.size())});
    const bool fits = std::equal(
        arrays.begin(), arrays.end(), arrays_.begin(), arrays_.end(),
        [](const NamedArray& a, const Array& b) { return a.path == b.path && a.shape == b.shape; });
    require<FileError>(fits, path, ": has other parameters than ", first_path, ", cannot average them");
    for (std::size_t i = 0; i < arrays.size(); ++i)
      for (std::size_t k = 0; k < arrays[i].values.size(); ++k)
        arrays_[i].values[k] += double{arrays[i].values[k]};
  }

  /// Puts the mean of `count` summands into `checkpoint` as its parameters.
  void mean(double count, Checkpoint& checkpoint) const {
    std::size_t total = 0;
    for (const Array& a : arrays_) total += a.values.size();
    auto storage = std::make_unique_for_overwrite<float[]>(total);
    float* next = storage.get();
    checkpoint.parameters.clear();
    for (const Array& a : arrays_) {
      std::transform(a.values.begin(), a.values.end(), next,
                     [&](double v) { return static_cast<float>(v / count); });
      checkpoint.parameters.push_back({a.path, a.shape, {next, a.values.size()}});
      next += a.values.size();
    }
    checkpoint.storage = std::move(storage);
  }

 private:
  struct Array {
    std::string path;
    Shape shape;
    std::vector<double> values;
  };
  std::vector<Array> arrays_;
};

/// The state of a run at its newest checkpoint.
TrainerState newest_state(const std::string& run, const std::string& folder) {
  const LatestCheckpoint latest = latest_valid_checkpoint(folder);
  require<FileError>(latest.skipped.empty(), latest.skipped.empty() ? "" : latest.skipped.front());
  require<FileError>(latest.checkpoint.has_value(), run, ": no checkpoint in ", folder,
                     ", expected step-*.h5");
  return state_of(*latest.checkpoint);
}

}  // namespace

std::vector<std::string> last_checkpoints(const std::string& run, std::int64_t count) {
  const std::string folder = RunFolder(run).checkpoints();
  const TrainerState state = newest_state(run, folder);
  std::vector<std::string> paths;
  for (const CheckpointFile& file : list_checkpoints(folder))
    if (file.step <= state.step && state.is_scheduled(file.step)) paths.push_back(file.path);
  const auto available = static_cast<std::int64_t>(paths.size());
  require(count >= 1 && count <= available, run, " has ", available, " checkpoints, cannot average the last ",
          count, " (it keeps training.keep_last of those made every training.checkpoint_every)");
  paths.erase(paths.begin(), paths.end() - count);
  return paths;
}

std::vector<std::string> best_checkpoints(const std::string& run, std::int64_t count) {
  const std::string folder = RunFolder(run).checkpoints();
  std::vector<TrainerState::Scored> best = newest_state(run, folder).best;
  const auto available = static_cast<std::int64_t>(best.size());
  require(count >= 1 && count <= available, run, " has kept ", available,
          " best checkpoints (training.keep_best), cannot average ", count);
  best.resize(static_cast<std::size_t>(count));
  std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  std::vector<std::string> paths;
  for (const TrainerState::Scored& scored : best) paths.push_back(checkpoint_path(folder, scored.step));
  return paths;
}

Checkpoint average_checkpoints(std::span<const std::string> paths) {
  require(!paths.empty(), "no checkpoints to average");
  Sum sum;
  Checkpoint result;
  nlohmann::json steps = nlohmann::json::array();
  for (const std::string& path : paths) {
    Checkpoint next = read_checkpoint(path);
    require<FileError>(steps.empty() || next.vocabulary == result.vocabulary, path,
                       ": has another vocabulary than ", paths.front(), ", cannot average them");
    sum.add(next, path, paths.front());
    steps.push_back(next.step);
    result = std::move(next);
  }
  sum.mean(static_cast<double>(paths.size()), result);
  result.ema.clear();
  result.first_moment.clear();
  result.second_moment.clear();
  nlohmann::json state = nlohmann::json::parse(result.state, nullptr, false);
  if (!state.is_object()) state = nlohmann::json::object();
  state["averaged"] = steps;
  result.state = state.dump();
  return result;
}

}  // namespace polyhead::train
