#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "polyhead/experiment/summary.h"
#include "polyhead/train/model_file.h"

/// The parts of a report's data.
namespace polyhead::experiment {

/// Names in `missing` what a page does not have, and the command, after "polyhead", that makes it.
void add_missing(nlohmann::ordered_json& report, const std::string& what, const std::string& command);

/// Members keys, baseline, points, bootstrap, rows and cells, of an experiment whose results are in `folder`.
nlohmann::ordered_json experiment_json(const Experiment& experiment, const std::string& folder,
                                       const std::vector<Row>& rows, int threads);

/// Members updates and validations of a training log, each with `step` and a list for every figure, and `diagnostics` of
/// heads where it has some. Of many updates those that follow each other are averaged. Throws FileError for a line that cannot be read, but for the last, which a killed
/// process may have left half-written.
nlohmann::ordered_json curve_json(const std::string& log);

/// Attention weights over a few sentence pairs of the configured data with the gold edges of their tokens; null where the
/// files of the data are not there. Throws NumbersError when weights are not finite.
nlohmann::ordered_json attention_json(const train::LoadedModel& loaded, int threads);

/// Member `heads`: what `polyhead heads ... --json` wrote in a run folder. Files that are not there are missing; a warning
/// says which are of another checkpoint than the one that is `loaded`, or, where none is, than the first of them.
/// Throws FileError naming a file that is not what its command writes, and what is wrong in it.
void add_head_files(nlohmann::ordered_json& report, const std::string& folder,
                    const train::LoadedModel* loaded);

}  // namespace polyhead::experiment
