#include "ablation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
#include "polyhead/experiment/collect.h"
#include "polyhead/train/run_folder.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

using experiment::Cell;
using experiment::Outcome;
using experiment::Status;

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The last line of a log that is not empty, without the program's name.
std::string last_line(const std::string& path) {
  std::ifstream in(path);
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) last = line;
  const std::string prefix = "polyhead: ";
  return last.starts_with(prefix) ? last.substr(prefix.size()) : last;
}

std::string label(const Cell& cell) {
  std::string text = experiment::text(cell.point);
  if (cell.control != experiment::Control::none) text += (text.empty() ? "" : ", ") + name(cell.control);
  if (cell.trial) text += fmt::format(" trial {}", *cell.trial);
  return fmt::format("{}{}seed {} ({})", text, text.empty() ? "" : ", ", cell.seed, cell.id);
}

std::vector<std::string> evaluate_arguments(const experiment::EvaluationPlan& evaluation,
                                            const std::string& folder, const std::string& split) {
  std::vector<std::string> arguments{
      "evaluate",
      folder,
      "--split",
      split,
      "--metrics",
      fmt::format("{}", fmt::join(experiment::evaluate_metrics(evaluation), ",")),
      "--threads",
      "1",
      "--json",
      "--sentences",
      folder + "/sentences-" + split + ".jsonl"};
  if (evaluation.limit) arguments.insert(arguments.end(), {"--limit", std::to_string(*evaluation.limit)});
  return arguments;
}

}  // namespace

std::vector<std::string> others_lines(const experiment::Results::Others& others, const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& [ids, why] :
       {std::pair{others.of_another_base, "belong to another base"},
        {others.of_this_base, "are not in this experiment's grid, seeds and controls"}})
    if (!ids.empty())
      lines.push_back(fmt::format(
          "{}/results.jsonl: {} cells {} ({}{}): they stay there, out of the tables", folder, ids.size(), why,
          fmt::join(ids.begin(), ids.begin() + std::min<long>(std::ssize(ids), 5), ", "),
          ids.size() > 5 ? ", ..." : ""));
  return lines;
}

Ablation::Ablation(const experiment::Experiment& experiment, const experiment::Plan& plan, std::string folder,
                   const FolderLock& lock, int jobs, int (*signal)())
    : experiment_(experiment),
      plan_(plan),
      folder_(std::move(folder)),
      base_(experiment::base_id(experiment)),
      lock_(lock),
      jobs_(static_cast<std::size_t>(jobs)),
      signal_(signal),
      results_(folder_),
      terminal_(isatty(STDERR_FILENO) == 1) {
  // What learning_rate_search chose is in the plan when all trials are known.
  plan_ = experiment::plan(experiment_, results_.trial_scores());
  for (const std::string& told : others_lines(results_.others(plan_.cells, base_), folder_)) line(told);
}

int Ablation::run() {
  do {
    queue_ = missing();
    total_ = done_ + static_cast<std::int64_t>(queue_.size()) + plan_.undecided;
    if (queue_.empty()) break;
    run_missing();
    plan_ = experiment::plan(experiment_, results_.trial_scores());
  } while (stopped_by_ == 0);
  if (open_) line("");
  save();
  if (stopped_by_ != 0) {
    line(fmt::format("{}: stopped, {} of {} cells done; the same command goes on", folder_, done_, total_));
    return 128 + stopped_by_;
  }
  line(done_ == 0 ? fmt::format("{}: all {} cells were done already", folder_, plan_.cells.size())
                  : fmt::format("{}: {} cells done", folder_, done_));
  return failure_;
}

/// Each run once, last to first; those that failed in this very process are not tried again.
std::vector<Cell> Ablation::missing() {
  std::vector<Cell> cells;
  std::set<std::string> seen;
  for (const Cell& cell : plan_.cells) {
    if (results_.is_complete(cell, experiment_.config.evaluation) ||
        tried_.contains(cell.id + (cell.trial ? "t" : "")))
      continue;
    if (seen.insert(cell.id).second) cells.push_back(cell);
  }
  for (const Cell& cell : cells) weight(cell);
  std::reverse(cells.begin(), cells.end());
  return cells;
}

void Ablation::run_missing() {
  while (!running_.empty() || (!queue_.empty() && stopped_by_ == 0)) {
    lock_.require_in_place();  // else cells, which go with this, would write into another experiment's folder
    while (stopped_by_ == 0 && running_.size() < jobs_ && !queue_.empty()) {
      const Cell cell = std::move(queue_.back());
      queue_.pop_back();
      start(cell);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (const int number = signal_(); number != 0 && stopped_by_ == 0) stop(number);
    std::erase_if(running_, [&](std::unique_ptr<Job>& job) {
      const std::optional<int> status = job->child->status();
      return status && advance(*job, *status);
    });
    show();
  }
}

void Ablation::start(const Cell& cell) {
  tried_.insert(cell.id + (cell.trial ? "t" : ""));
  std::filesystem::create_directories(folder_of(cell));
  remove_temporaries(folder_of(cell));
  replace_file(folder_of(cell) + "/config.yaml", config::dump(cell.config));
  auto job = std::make_unique<Job>();
  job->cell = cell;
  job->splits = results_.missing_splits(cell, experiment_.config.evaluation);
  job->begin = Clock::now();
  next_stage(*job);
  running_.push_back(std::move(job));
}

void Ablation::next_stage(Job& job) {
  const std::string folder = folder_of(job.cell);
  job.stage_begin = Clock::now();
  if (!job.trained)
    job.child = std::make_unique<Child>(std::vector<std::string>{"train", folder + "/config.yaml", "--out",
                                                                 folder, "--resume", "--threads", "1"},
                                        "/dev/null", folder + "/ablate.log");
  else
    job.child = std::make_unique<Child>(
        evaluate_arguments(experiment_.config.evaluation, folder, job.splits.front()),
        folder + "/evaluation-" + job.splits.front() + ".json", folder + "/ablate.log");
}

bool Ablation::advance(Job& job, int status) {
  if (stopped_by_ != 0) return true;  // to be gone on with by the next run
  if (status != 0) {
    fail(job, status);
    return true;
  }
  try {
    take_up(job);
  } catch (const Error& error) {
    fail(job, static_cast<int>(error.status()), error.what());
    return true;
  }
  if (!job.splits.empty()) {
    next_stage(job);
    return false;
  }
  finish(job);
  return true;
}

/// What the stage that ended left in files.
void Ablation::take_up(Job& job) {
  const std::string folder = folder_of(job.cell);
  if (!job.trained) {
    job.trained = true;
    job.outcome = experiment::training_outcome(folder, job.cell.config);
    if (const Outcome* before = results_.find(job.cell.id))
      job.outcome.evaluate_seconds = before->evaluate_seconds;
  } else {
    const std::string path = folder + "/evaluation-" + job.splits.front() + ".json";
    auto measures =
        experiment::measures_of(read_text(path), path, job.splits.front(), experiment_.config.evaluation);
    std::move(measures.begin(), measures.end(), std::back_inserter(job.outcome.measures));
    job.outcome.evaluate_seconds += seconds_since(job.stage_begin);
    job.splits.erase(job.splits.begin());
  }
}

void Ablation::finish(Job& job) {
  const Cell& cell = job.cell;
  Outcome& outcome = job.outcome;
  outcome.costs = workloads_.of(cell.config).costs(cell.config.model);
  outcome.learning_rate = cell.config.training.schedule.learning_rate;
  const Status status = outcome.status;
  const std::string message = outcome.message ? ": " + *outcome.message : "";
  results_.put(cell.id, std::move(outcome));
  save();
  ++done_;
  if (status == Status::finished) {
    done_weight_ += weight(cell);
    done_seconds_ += seconds_since(job.begin);
  }
  line(fmt::format("{}/{} {} {} after {}{}{}", done_, total_, label(cell),
                   config::Codec<Status>::text(status), clock_text(seconds_since(job.begin)), message,
                   rate()));
}

void Ablation::fail(Job& job, int status, const std::string& message) {
  if (!job.trained && std::filesystem::exists(train::RunFolder(folder_of(job.cell)).log())) try {
      job.outcome = experiment::training_outcome(folder_of(job.cell), job.cell.config);
    } catch (const Error&) {  // what the program said matters more
    }
  job.outcome.measures.clear();
  job.outcome.status =
      status == static_cast<int>(polyhead::Status::numbers) ? Status::diverged : Status::failed;
  const std::string log = last_line(folder_of(job.cell) + "/ablate.log");
  job.outcome.message = !message.empty() ? message
                        : status > 128   ? fmt::format("ended by signal {}", status - 128)
                                         : log;
  if (job.outcome.status == Status::failed && failure_ == 0) failure_ = status > 128 ? 1 : status;
  finish(job);
}

void Ablation::stop(int number) {
  stopped_by_ = number;
  line(fmt::format("stopping: {} cells save what they have", running_.size()));
  for (const auto& job : running_) job->child->signal(number);
}

void Ablation::save() const {
  const auto rows = results_.rows(plan_.cells, base_, experiment_.config.evaluation);
  lock_.require_in_place();
  if (experiment::to_jsonl(rows) != read_text(folder_ + "/results.jsonl")) results_.write(rows);
}

/// Floating-point operations of a cell's training, as far as they are known: what the time it takes goes by.
double Ablation::weight(const Cell& cell) {
  const auto found = weights_.find(cell.id);
  if (found != weights_.end()) return found->second;
  const experiment::Workload& workload = workloads_.of(cell.config);
  const double updates = workload.updates(cell.config.training).value_or(1);
  return weights_[cell.id] = updates * cell.config.training.batch_tokens * cell.config.training.accumulate *
                             workload.costs(cell.config.model).flops_per_token;
}

/// " | 24.1 cells/h | ETA 1:02:05"
std::string Ablation::rate() {
  if (done_weight_ <= 0) return "";
  const double speed = done_weight_ / done_seconds_;
  double left = 0;
  for (const Cell& cell : queue_) left += weight(cell);
  for (const auto& job : running_)
    left += std::max(0., weight(job->cell) - speed * seconds_since(job->begin));
  const double seconds = left / speed / static_cast<double>(jobs_);
  const double per_hour = 3600 * static_cast<double>(done_) / (done_seconds_ / static_cast<double>(jobs_));
  const int digits = per_hour < 10 ? 2 : per_hour < 100 ? 1 : 0;
  return fmt::format(" | {:.{}f} cells/h | ETA {}", per_hour, digits, clock_text(seconds));
}

void Ablation::line(const std::string& text) {
  std::cerr << (open_ ? "\r\033[K" : "");
  if (!text.empty()) std::cerr << text << '\n';
  std::cerr << std::flush;
  open_ = false;
}

/// On a terminal, how far it is.
void Ablation::show() {
  if (!terminal_ || running_.empty() || Clock::now() - shown_ < std::chrono::milliseconds(500)) return;
  shown_ = Clock::now();
  std::cerr << fmt::format("\r\033[K{}/{} cells | {} running{}", done_, total_, running_.size(), rate())
            << std::flush;
  open_ = true;
}

}  // namespace polyhead::tools
