#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>

#include "ablation.h"
#include "commands.h"
#include "configuration.h"
#include "default_config.h"
#include "files.h"
#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
#include "polyhead/core/folder_lock.h"
#include "polyhead/core/parallel.h"
#include "polyhead/experiment/files.h"
#include "polyhead/experiment/summary.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

struct AblateOptions {
  std::string experiment, out;
  std::vector<std::string> overrides;
  int jobs = 1;
  bool dry_run = false;
};

std::string state_of(const experiment::Cell& cell, const experiment::Results& results,
                     const experiment::EvaluationPlan& evaluation) {
  const experiment::Outcome* outcome = results.find(cell.id);
  if (results.is_complete(cell, evaluation)) return config::Codec<experiment::Status>::text(outcome->status);
  return outcome == nullptr                              ? "new"
         : outcome->status == experiment::Status::failed ? "failed"
                                                         : "to evaluate";
}

/// Expected seconds of training on one thread that has a core to itself, as measured on a few updates; models that differ in their seed alone
/// are measured once.
class Expectation {
 public:
  explicit Expectation(experiment::Workloads& workloads) : workloads_(workloads) {}

  /// Null where nothing says when training ends.
  std::optional<double> seconds(const experiment::Cell& cell) {
    const experiment::Workload& workload = workloads_.of(cell.config);
    const auto updates = workload.updates(cell.config.training);
    const auto minutes = cell.config.training.max_minutes;
    if (!updates) return minutes ? std::optional(60 * *minutes) : std::nullopt;
    train::Config model = cell.config;
    model.seed = 0;
    model.name = "";
    const auto [update, is_new] = measured_.emplace(config::dump(model), 0);
    if (is_new) update->second = workload.seconds_per_update(cell.config);
    return std::min(*updates * update->second, minutes ? 60 * *minutes : HUGE_VAL);
  }

 private:
  experiment::Workloads& workloads_;
  std::map<std::string, double> measured_;
};

/// A row for each cell and what they take together.
std::string listing(const experiment::Experiment& experiment, const experiment::Plan& plan,
                    const experiment::Results& results, int jobs) {
  experiment::Workloads workloads;
  Expectation expectation(workloads);
  std::set<std::string> counted;
  double total = 0;
  std::int64_t missing = 0;
  std::string text =
      fmt::format("{:16}  {:20}  {:>4}  {:>11}  {:>11}  {:>10}  {:>9}  {:11}  {}\n", "cell", "control",
                  "seed", "parameters", "FLOPs/token", "scores B", "training", "state", "grid");
  for (const experiment::Cell& cell : plan.cells) {
    const experiment::Costs costs = workloads.of(cell.config).costs(cell.config.model);
    const std::optional<double> seconds = expectation.seconds(cell);
    text += fmt::format("{}  {:20}  {:>4}  {:>11}  {:>11.4g}  {:>10.4g}  {:>9}  {:11}  {}{}\n", cell.id,
                        name(cell.control), cell.seed, costs.parameters, costs.flops_per_token,
                        costs.score_bytes, seconds ? clock_text(*seconds) : "?",
                        state_of(cell, results, experiment.config.evaluation), experiment::text(cell.point),
                        cell.trial ? fmt::format(" (trial, learning rate x {})", *cell.trial) : "");
    if (results.is_complete(cell, experiment.config.evaluation) || !counted.insert(cell.id).second) continue;
    ++missing;
    if (results.find(cell.id) == nullptr) total += seconds.value_or(0);
  }
  if (plan.undecided > 0)
    text += fmt::format(
        "and {} cells more, at the learning rates that the trials of learning_rate_search choose\n",
        plan.undecided);
  return text +
         fmt::format(
             "{} cells, {} to run. Training them is expected to take {} on one thread, {} with --jobs {} if "
             "side by side\nthey are as fast; evaluation comes on top.\n",
             std::ssize(plan.cells), missing, clock_text(total), clock_text(total / jobs), jobs);
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder + "/cells", error);
  require<FileError>(!error, folder, ": cannot make the folder: ", error.message());
}

/// What the experiment in a folder says of its files; nothing where there is none that can be read.
experiment::Digests recorded_digests(const std::string& folder) try {
  return experiment::load_experiment(folder + "/experiment.yaml", {}, default_config).config.digests;
} catch (const Error&) {
  return {};
}

/// The experiment of a file, to be run in `folder`, where there is its plan.
experiment::Experiment load(const AblateOptions& o) {
  experiment::Experiment experiment = experiment::load_experiment(o.experiment, o.overrides, default_config);
  experiment::Digests known = recorded_digests(run_folder(o.out, experiment.config.name));
  known.of.merge(experiment.config.digests.of);
  experiment.config.digests = experiment::digests_of(experiment::plan(experiment), known);
  return experiment;
}

int processors() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

/// Writes the tables and their figures, and prints them. The exit status is `status` where nobody asked to stop meanwhile.
int summarise(const experiment::Experiment& experiment, const Ablation& ablation, const std::string& folder,
              const FolderLock& lock, int threads, int status) {
  std::vector<experiment::Group> groups = summarize(experiment, ablation.plan(), ablation.results());
  const bool none = std::all_of(groups.begin(), groups.end(), [](const experiment::Group& group) {
    return group.finished + group.diverged + group.failed == 0;
  });
  if (none) return status;
  const std::string note = add_bootstrap(groups, experiment, ablation.plan(), ablation.results(), folder,
                                         threads, [] { return signal_received() != 0; });
  const std::string summary = summary_text(experiment, groups, note);
  lock.require_in_place();
  replace_file(folder + "/summary.jsonl", experiment::summary_jsonl(groups));
  replace_file(folder + "/summary.txt", summary);
  write_output("", summary);
  const int number = signal_received();
  return number != 0 ? 128 + number : status;
}

int run_ablate(const AblateOptions& o) {
  const experiment::Experiment experiment = load(o);
  const std::string folder = run_folder(o.out, experiment.config.name);
  const experiment::Plan plan = experiment::plan(experiment);
  const int jobs = std::min(o.jobs, processors());
  if (jobs < o.jobs)
    complain(
        concat("--jobs ", o.jobs, ": there are ", jobs, " processors; ", jobs, " cells run side by side"));
  const experiment::Results results(folder);
  experiment::check_files(plan, results, experiment.config.evaluation);
  if (o.dry_run) {
    const experiment::Plan whole = experiment::plan(experiment, results.trial_scores());
    for (const std::string& told :
         others_lines(results.others(whole.cells, experiment::base_id(experiment)), folder))
      complain(told);
    write_output("", listing(experiment, whole, results, jobs));
    return 0;
  }
  watch_signals();
  make_folder(folder);
  const FolderLock lock(folder, "run", FolderLock::Holder::process_and_children);
  remove_temporaries(folder);
  replace_file(folder + "/experiment.yaml", experiment::dump(experiment));
  Ablation ablation(experiment, plan, folder, lock, jobs, signal_received);
  const int status = ablation.run();
  return summarise(experiment, ablation, folder, lock, jobs, status);
}

}  // namespace

Command add_ablate(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "ablate",
      "Train and evaluate every cell of an experiment: what is missing of it, and then what it says");
  auto o = std::make_shared<AblateOptions>();
  command->add_option("EXPERIMENT", o->experiment, "experiment file")->required()->type_name("YAML");
  command->add_option("--out", o->out, "folder of the experiment; runs/NAME by default");
  o->jobs = default_threads();
  command
      ->add_option("--jobs", o->jobs,
                   "cells that run side by side, one thread each; at most, and by default, one a core")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_overrides(*command, o->overrides);
  command->add_flag(
      "--dry-run", o->dry_run,
      "list the cells, what they cost and how long they would train, as measured on a few updates");
  return {command, [o] { return run_ablate(*o); }};
}

}  // namespace polyhead::tools
