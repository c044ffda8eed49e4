#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "polyhead/data/grammar/grammar.h"
#include "polyhead/experiment/config.h"
#include "polyhead/train/config.h"

namespace polyhead::experiment {

/// The files of text, and of models of tokenizers, that a configuration names, each after its key; none of toy tasks.
std::vector<std::pair<std::string, std::string>> data_files(const train::Config& config);

/// A point of the grid under a control with a seed. Cells whose configurations are the same have the same id, and are one
/// run: the baseline is the same model under several controls.
struct Cell {
  std::string id = {};  ///< see cell_id()
  Point point = {};
  Control control = Control::none;
  std::optional<double> trial =
      {};  ///< of learning_rate_search: the factor of the learning rate, not to be evaluated
  std::uint64_t seed = 0;
  train::Config config = {};  ///< resolved; its name is the id
};

/// 16 hexadecimal digits: the FNV-1a hash of the settings in which a configuration differs from the defaults, but for those
/// that cannot change a result: name, training.checkpoint_every, keep_last, keep_best, diagnostics_every, and
/// section checkpoint. A setting that is new in the program leaves ids as they are. Of data.task grammar it is also of the
/// version of the toy language, from the second on: results of another version are those of other cells.
/// Of data.task files it is also of the digests of the files that are named, as far as they are known.
std::string cell_id(const train::Config& config, int language = data::grammar::version,
                    const Digests& digests = {});
/// The same of the base of an experiment, without seed and what the grid sets.
std::string base_id(const Experiment& experiment);

/// What learning_rate_search goes by, by the id of a trial: its best validation score by `training.best_metric`, larger
/// being better; minus infinity for one that diverged or failed.
using TrialScores = std::map<std::string, double>;

/// All cells of an experiment: by points, the last key of the grid varying fastest, then controls, then seeds.
struct Plan {
  std::vector<Cell> cells;
  /// Cells that come when the trials of learning_rate_search have scores, in number.
  std::int64_t undecided = 0;
};

/// Throws one Error (usage) that tells all that is wrong in the configurations of all cells, each once.
Plan plan(const Experiment& experiment, const TrialScores& trials = {});

/// The splits that an experiment evaluates, "all" spelt out, in their order.
std::vector<std::string> splits_of(const EvaluationPlan& evaluation);

/// The points that are compared: for each point of the grid the one with the baseline's values in place of its own; none
/// for those without a baseline and for the baseline itself.
std::optional<Point> baseline_of(const Experiment& experiment, const Point& point);

}  // namespace polyhead::experiment
