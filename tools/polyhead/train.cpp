#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <iostream>

#include "commands.h"
#include "default_config.h"
#include "polyhead/config/yaml.h"
#include "polyhead/train/run_folder.h"
#include "polyhead/train/trainer.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

struct Options {
  std::string config, out;
  std::vector<std::string> overrides;
  bool resume = false;
  int threads = 1;
};

/// The configuration asked for: a file, else when resuming the run's own, else the embedded default.
train::Config configuration(const Options& o) {
  if (!o.config.empty()) return config::load<train::Config>(o.config, o.overrides);
  const std::string of_run = train::RunFolder(o.out).config();
  if (o.resume && !o.out.empty() && std::filesystem::exists(of_run))
    return config::load<train::Config>(of_run, o.overrides);
  return config::parse<train::Config>(default_config, "the default configuration", o.overrides);
}

int run(const Options& o) {
  const train::Config config = configuration(o);
  const std::string folder = o.out.empty() ? "runs/" + config.name : o.out;
  TrainingProgress progress(config.training);
  watch_signals();
  const train::TrainResult result = train::train(config,
                                                 {.folder = folder,
                                                  .threads = o.threads,
                                                  .resume = o.resume,
                                                  .stop_requested = [] { return signal_received() != 0; }},
                                                 progress);
  progress.message(fmt::format("{}: ended at step {} by {}", folder, result.step, name(result.reason)));
  return result.reason == train::StopReason::signal ? 128 + signal_received() : 0;
}

}  // namespace

Command add_train(CLI::App& program) {
  CLI::App* command = program.add_subcommand("train", "Train a Transformer as a YAML file says");
  auto o = std::make_shared<Options>();
  command->add_option("CONFIG", o->config,
                      "configuration; without one, the built-in toy task (configs/toy.yaml)");
  command->add_option("--out", o->out, "run folder; runs/NAME by default");
  command->add_flag("--resume", o->resume, "go on from the newest checkpoint of the run folder");
  add_overrides(*command, o->overrides);
  add_threads(*command, o->threads);
  return {command, [o] { return run(*o); }};
}

}  // namespace polyhead::tools
