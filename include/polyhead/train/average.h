#pragma once

#include <span>
#include <string>
#include <vector>

#include "polyhead/train/checkpoint.h"

namespace polyhead::train {

/// The paths of the newest `count` checkpoints of a run that `training.checkpoint_every` made, by step: the same whether
/// the run was interrupted or not, and none kept only for its score. Throws Error when the run has fewer.
std::vector<std::string> last_checkpoints(const std::string& run, std::int64_t count);
/// The paths of the best `count` checkpoints of a run, as its newest checkpoint knows them, by step. Throws Error when the
/// run has kept fewer.
std::vector<std::string> best_checkpoints(const std::string& run, std::int64_t count);

/// The arithmetic mean of the weights that decoding would use (the moving average where there is one), summed in double
/// in the order of `paths`. Configuration, vocabulary, step and state are those of the last path; the state's "averaged"
/// lists the steps of all. There are no moments. Throws FileError when a file cannot be read, or models or vocabularies
/// differ.
Checkpoint average_checkpoints(std::span<const std::string> paths);

}  // namespace polyhead::train
