#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "polyhead/experiment/cells.h"
#include "polyhead/experiment/results.h"
#include "polyhead/metrics/statistics.h"

/// What an experiment says, over its seeds.
namespace polyhead::experiment {

/// Of one split and metric.
struct Figure {
  std::string split = {}, metric = {};
  std::optional<std::string> phenomenon = {};       ///< none: of all sentences
  metrics::SeedSummary over_seeds = {};             ///< with the 95% t interval
  std::optional<metrics::Estimate> bootstrap = {};  ///< see add_bootstrap()
  /// Against the baseline, paired by seed; none where there is no baseline, or fewer than two pairs.
  std::optional<metrics::PairedDifference> difference = {};
  /// Over all such differences in this metric under this control: Holm's, or of phenomena Benjamini & Hochberg's.
  double adjusted_p = 1;
  std::optional<metrics::Estimate> difference_bootstrap = {};
  /// Of the same pairs, where EvaluationPlan::equivalence has a margin of the metric.
  std::optional<metrics::Equivalence> equivalence = {};
};

/// A point under a control: the mean of what its seeds cost, and its figures.
struct Group {
  Point point = {};
  Control control = Control::none;
  std::int64_t cells = 0, finished = 0, diverged = 0, failed = 0;
  Costs costs = {};
  double learning_rate = 0, tokens_per_second = 0;
  /// Of all sentences by metrics, then splits; then the same of each phenomenon.
  std::vector<Figure> figures = {};
};

/// By controls, then points. Cells without a result yet are counted in `cells` alone.
std::vector<Group> summarize(const Experiment& experiment, const Plan& plan, const Results& results);

/// The draws of add_bootstrap().
inline constexpr int bootstrap_draws = 10000;

/// Gives the headline figures, those of all sentences of the evaluation's first split, of two seeds or more the 95% intervals of the
/// bootstrap over seeds, then sentences (metrics::hierarchical_bootstrap, of a fixed seed), out of what cells made of every
/// sentence: FOLDER/cells/ID/sentences-SPLIT.jsonl. Seeds that diverged are left out, as in the t interval. Whether seeds have sentences of their own is
/// seen from these files. Figures whose seeds have as many sentences take the same draws, and differences those of both points. `threads` change nothing.
/// A figure stays without where a cell has no such file, or one that does not give the cell's figure in `results`. Returns why,
/// in one line; empty where there are all. So it does, with figures left out, soon after `stop` has become true: it is asked
/// before files are read, and before each lot of draws.
std::string add_bootstrap(std::vector<Group>& groups, const Experiment& experiment, const Plan& plan,
                          const Results& results, const std::string& folder, int threads,
                          const std::function<bool()>& stop = {});

/// Tables for a terminal: what models cost, then for each metric and split the mean and its intervals over seeds, and the
/// difference to the baseline; of each metric and control phenomena against points. `note` is what add_bootstrap() returned.
std::string summary_text(const Experiment& experiment, const std::vector<Group>& groups,
                         const std::string& note);
/// The same figures, a JSON object a line: {"grid", "control", "split", "metric", "phenomenon" (null: all sentences), "mean",
/// "low", "high", "bootstrap": {"low", "high"}, "seeds", "diverged", "difference": {"mean", "low", "high", "bootstrap", "pairs",
/// "p", "p_adjusted", "equivalence": {"margin", "low", "high", "p"}}}, null for what there is not.
std::string summary_jsonl(const std::vector<Group>& groups);

}  // namespace polyhead::experiment
