#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace polyhead::train {

/// The files of a run: config.yaml, train.jsonl, best.json and checkpoints/step-*.h5.
class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.yaml"; }
  std::string log() const { return path_ + "/train.jsonl"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }

  /// Whether there is anything of a run.
  bool exists() const;
  /// Makes the folders and writes the resolved configuration. Throws FileError.
  void create(const std::string& config_yaml) const;
  /// Removes the lines of the log after update `step`, and a line cut short. Throws FileError.
  void cut_log(std::int64_t step) const;

  /// The update of the best checkpoint, as the trainer noted it last; none before a validation.
  std::optional<std::int64_t> best_step() const;
  void set_best_step(std::int64_t step) const;

 private:
  std::string path_;
};

}  // namespace polyhead::train
