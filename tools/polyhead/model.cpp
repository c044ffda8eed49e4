#include "model.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "files.h"
#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"

namespace polyhead::tools {

void add_model(CLI::App& command, ModelOptions& options) {
  command
      .add_option("MODEL", options.model,
                  "run folder (its best checkpoint by training.best_metric, else its last) or checkpoint")
      ->required()
      ->type_name("RUN|CHECKPOINT");
  add_threads(command, options.threads);
}

void add_decoding(CLI::App& command, ModelOptions& options) {
  command.add_option("--beam", options.beam, "hypotheses of beam search, decoding.beam_size; 1: greedy")
      ->check(CLI::Range(1, 1024));
  add_overrides(command, options.overrides);
}

CLI::Option* add_split(CLI::App& command, std::string& split) {
  split = "test";
  return command.add_option("--split", split, "which part of the configured data")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str();
}

CLI::Option* add_limit(CLI::App& command, int& limit) {
  return command.add_option("--limit", limit, "at most that many sentences of a split, the first")
      ->check(CLI::Range(1, 1'000'000'000));
}

std::vector<std::string> split_settings() {
  return {"data.task", "data.train.*", "data.valid.*", "data.test.*"};
}

data::Split split_of(const std::string& name) {
  return name == "train" ? data::Split::train : name == "valid" ? data::Split::valid : data::Split::test;
}

data::ParallelText load_split(const std::string& name, const train::Config& config) {
  data::ParallelText text = data::load_text(config.data, split_of(name), config.seed);
  if (text.repaired > 0)
    complain(concat(text.name, ": ", text.repaired, " lines with invalid UTF-8, repaired with U+FFFD"));
  return text;
}

namespace {

bool covers(std::string_view pattern, std::string_view key) {
  return pattern.ends_with(".*") ? key.starts_with(pattern.substr(0, pattern.size() - 1)) : key == pattern;
}

}  // namespace

train::LoadedModel load(const ModelOptions& options, const std::vector<std::string>& allowed) {
  train::LoadedModel loaded = train::load_model(options.model);
  if (!loaded.damaged.empty()) complain(loaded.damaged);
  std::vector<std::string> overrides = options.overrides;
  if (options.beam > 0) overrides.push_back(concat("decoding.beam_size=", options.beam));
  if (options.nbest > 0) overrides.push_back(concat("decoding.nbest=", options.nbest));
  if (overrides.empty()) return loaded;
  const auto config =
      config::parse<train::Config>(config::dump(loaded.config), loaded.path + ": /config", overrides);
  for (const config::Difference& d : config::difference(loaded.config, config)) {
    require(std::any_of(allowed.begin(), allowed.end(), [&](const auto& p) { return covers(p, d.key); }),
            "--set ", d.key, "=", d.second, ": a trained model keeps this setting (", d.first,
            "), expected one of ", fmt::format("{}", fmt::join(allowed, ", ")));
  }
  loaded.config = config;
  return loaded;
}

void warn_cropped(std::int64_t cropped, const train::Config& config) {
  if (cropped > 0)
    complain(concat(cropped, " lines of more than ", config.max_pieces(),
                    " pieces, cut there (the smaller of data.max_length and model.max_length - 1)"));
}

}  // namespace polyhead::tools
