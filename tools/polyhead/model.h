#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "polyhead/data/tasks.h"
#include "polyhead/train/model_file.h"

namespace polyhead::tools {

/// What the commands that use a trained model have in common.
struct ModelOptions {
  std::string model;
  std::vector<std::string> overrides;
  int beam = 0, nbest = 0;  ///< 0: as configured
  int threads = 1;
};

/// RUN|CHECKPOINT and --threads.
void add_model(CLI::App& command, ModelOptions& options);
/// --beam and --set.
void add_decoding(CLI::App& command, ModelOptions& options);

/// --split: test by default.
CLI::Option* add_split(CLI::App& command, std::string& split);
/// --limit, above 0.
CLI::Option* add_limit(CLI::App& command, int& limit);
/// What --split named.
data::Split split_of(const std::string& name);
/// Where splits come from: settings that --set may change for a command that reads one.
std::vector<std::string> split_settings();
/// A split of the configured data. A line on stderr says when some of it held invalid UTF-8.
data::ParallelText load_split(const std::string& split, const train::Config& config);

/// The model with its configuration as overridden. Throws Error when a setting would change that is not in `allowed`, a
/// list of keys ("data.max_length") and sections ("decoding.*").
train::LoadedModel load(const ModelOptions& options, const std::vector<std::string>& allowed);

/// A line on stderr when input lines were cut.
void warn_cropped(std::int64_t cropped, const train::Config& config);

}  // namespace polyhead::tools
