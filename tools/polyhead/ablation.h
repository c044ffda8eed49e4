#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "child.h"
#include "polyhead/core/clock.h"
#include "polyhead/core/folder_lock.h"
#include "polyhead/experiment/results.h"
#include "polyhead/experiment/workload.h"

namespace polyhead::tools {

/// What is said of the cells of a folder that an experiment does not have.
std::vector<std::string> others_lines(const experiment::Results::Others& others, const std::string& folder);

/// Runs the cells of an experiment side by side, each in processes of its own, and keeps what comes of them.
class Ablation {
 public:
  /// `lock` is that of the folder. `signal` gives the signal that asks to stop, 0 while there is none.
  Ablation(const experiment::Experiment& experiment, const experiment::Plan& plan, std::string folder,
           const FolderLock& lock, int jobs, int (*signal)());

  /// Runs what is missing. The exit status: 128 + the signal that stopped it, that of the first cell that failed, or 0.
  int run();
  const experiment::Plan& plan() const { return plan_; }
  const experiment::Results& results() const { return results_; }

 private:
  /// A run of the program for one cell after the other: first train, then evaluate for each split.
  struct Job {
    experiment::Cell cell;
    std::vector<std::string> splits;  ///< still to be evaluated on; the first is under way where `trained`
    bool trained = false;
    experiment::Outcome outcome;
    std::unique_ptr<Child> child;
    Clock::time_point begin, stage_begin;
  };

  void run_missing();
  std::vector<experiment::Cell> missing();
  void start(const experiment::Cell& cell);
  void next_stage(Job& job);
  /// Whether the job is at its end.
  bool advance(Job& job, int status);
  void finish(Job& job);
  /// `message`: what is wrong; else what the program said last.
  void fail(Job& job, int status, const std::string& message = "");
  void take_up(Job& job);
  void stop(int number);
  void save() const;

  std::string folder_of(const experiment::Cell& cell) const { return folder_ + "/cells/" + cell.id; }
  double weight(const experiment::Cell& cell);
  void line(const std::string& text);
  void show();
  std::string rate();

  const experiment::Experiment& experiment_;
  experiment::Plan plan_;
  std::string folder_, base_;
  const FolderLock& lock_;
  std::size_t jobs_;
  int (*signal_)();
  experiment::Results results_;
  experiment::Workloads workloads_;
  std::map<std::string, double> weights_;
  std::vector<std::unique_ptr<Job>> running_;
  std::vector<experiment::Cell> queue_;  ///< the next is the last
  std::set<std::string> tried_;
  int failure_ = 0, stopped_by_ = 0;

  bool terminal_, open_ = false;
  Clock::time_point shown_{};
  std::int64_t done_ = 0, total_ = 0;
  double done_weight_ = 0, done_seconds_ = 0;
};

}  // namespace polyhead::tools
