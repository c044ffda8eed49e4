#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "polyhead/experiment/results.h"

/// Results out of what the program wrote.
namespace polyhead::experiment {

/// What train.jsonl of a run tells: the updates made, seconds, target tokens a second, and as split valid the best
/// validation by `training.best_metric`. Throws FileError when the log cannot be read.
Outcome training_outcome(const std::string& run_folder, const train::Config& config);

/// The metrics that `polyhead evaluate --metrics` has to be asked for.
std::vector<std::string> evaluate_metrics(const EvaluationPlan& evaluation);

/// What `polyhead evaluate --json` printed about a split: the plan's metrics of all sentences and, of the toy language, by
/// phenomenon those that there are. Throws FileError naming `path` when `json` is something else.
std::vector<Measure> measures_of(std::string_view json, const std::string& path, const std::string& split,
                                 const EvaluationPlan& evaluation);

}  // namespace polyhead::experiment
