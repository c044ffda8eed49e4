#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <iostream>

#include "commands.h"
#include "configuration.h"
#include "diagnostics.h"
#include "polyhead/train/run_folder.h"
#include "polyhead/train/trainer.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

struct TrainOptions : ConfigOptions {
  std::string out;
  bool resume = false;
  int threads = 1;
};

/// A file, else when resuming the run's own, else the built-in default.
train::Config chosen_configuration(const TrainOptions& o) {
  ConfigOptions chosen = o;
  if (chosen.config.empty() && o.resume && !o.out.empty()) {
    const std::string of_run = train::RunFolder(o.out).config();
    if (std::filesystem::exists(of_run)) chosen.config = of_run;
  }
  return configuration(chosen);
}

int run_train(const TrainOptions& o) {
  const train::Config config = chosen_configuration(o);
  const std::string folder = run_folder(o.out, config.name);
  TrainingProgress progress(config.training);
  watch_signals();
  const train::TrainResult result = train::train(config,
                                                 {.folder = folder,
                                                  .threads = o.threads,
                                                  .resume = o.resume,
                                                  .stop_requested = [] { return signal_received() != 0; },
                                                  .diagnose = training_diagnostics(config, o.threads)},
                                                 progress);
  progress.message(fmt::format("{}: ended at step {} by {}", folder, result.step, name(result.reason)));
  return result.reason == train::StopReason::signal ? 128 + signal_received() : 0;
}

}  // namespace

Command add_train(CLI::App& program) {
  CLI::App* command = program.add_subcommand("train", "Train a Transformer as a YAML file says");
  auto o = std::make_shared<TrainOptions>();
  add_configuration(*command, *o);
  command->add_option("--out", o->out, "run folder; runs/NAME by default");
  command->add_flag("--resume", o->resume, "go on from the newest checkpoint of the run folder");
  add_threads(*command, o->threads);
  return {command, [o] { return run_train(*o); }};
}

}  // namespace polyhead::tools
