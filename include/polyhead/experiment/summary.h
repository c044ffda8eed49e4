#pragma once

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
  std::optional<std::string> phenomenon = {};  ///< none: of all sentences
  metrics::SeedSummary over_seeds = {};        ///< with the 95% t interval
  /// Against the baseline, paired by seed; none where there is no baseline, or fewer than two pairs.
  std::optional<metrics::PairedDifference> difference = {};
  /// Over all such differences in this metric under this control: Holm's, or of phenomena Benjamini & Hochberg's.
  double adjusted_p = 1;
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

/// Tables for a terminal: what models cost, then for each metric and split the mean and its interval over seeds, and the
/// difference to the baseline.
std::string summary_text(const Experiment& experiment, const std::vector<Group>& groups);

}  // namespace polyhead::experiment
