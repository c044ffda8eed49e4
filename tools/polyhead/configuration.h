#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "polyhead/train/config.h"

namespace polyhead::tools {

/// What the commands that start from a configuration have in common.
struct ConfigOptions {
  std::string config;  ///< a path; empty: the built-in default
  std::vector<std::string> overrides;
};

/// CONFIG and --set.
void add_configuration(CLI::App& command, ConfigOptions& options);

/// The configuration asked for. Throws ConfigError as config::load does.
train::Config configuration(const ConfigOptions& options);

/// `out`, or where that is empty runs/NAME. Throws Error (usage) when a name would lead out of runs/.
std::string run_folder(const std::string& out, const std::string& name);

}  // namespace polyhead::tools
