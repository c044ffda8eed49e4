#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace polyhead::train {

/// The files of a run: config.yaml, train.jsonl and checkpoints/step-*.h5.
class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.yaml"; }
  std::string log() const { return path_ + "/train.jsonl"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }

  /// Whether there is anything of a run.
  bool exists() const;
  /// Makes the folders. Throws FileError.
  void create() const;
  /// Removes what a killed process left half-written and writes the resolved configuration. Throws FileError.
  void open(const std::string& config_yaml) const;
  /// Removes the lines of the log after update `step`, and a line cut short. Throws FileError.
  void cut_log(std::int64_t step) const;

 private:
  std::string path_;
};

}  // namespace polyhead::train
