#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// The program's sub-commands, one file each. add_... registers a command's options with CLI11 and gives what it does;
/// the value returned is the exit status.
namespace polyhead::tools {

using Run = std::function<int()>;

struct Command {
  CLI::App* app;
  Run run;
};

Command add_train(CLI::App& program);
Command add_translate(CLI::App& program);
Command add_evaluate(CLI::App& program);
Command add_score(CLI::App& program);
Command add_heads(CLI::App& program);
Command add_average(CLI::App& program);
Command add_metrics(CLI::App& program);
Command add_inspect(CLI::App& program);
Command add_config(CLI::App& program);
Command add_data(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_ablate(CLI::App& program);
Command add_report(CLI::App& program);

/// --threads: cores by default.
void add_threads(CLI::App& command, int& threads);
/// --seed: an integer that is not negative.
CLI::Option* add_seed(CLI::App& command, std::uint64_t& seed, const std::string& description);
/// --set key.path=value ...
void add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// The signal (SIGINT, SIGTERM) that asked the program to stop since watch_signals(), else 0. A second one ends it at once, and
/// so does one before the first call: there is nothing to save yet.
int signal_received();

/// To be called before other threads start: signals reach only a thread that waits for them.
void watch_signals();

}  // namespace polyhead::tools
