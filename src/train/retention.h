#pragma once

#include <string>

#include "polyhead/train/trainer.h"
#include "trainer_state.h"

namespace polyhead::train {

/// Renames the checkpoints of `folder` of more updates than `step`, which nothing can go on from, to PATH.damaged, and
/// says so: they are neither the newest any longer nor in the way of those to come. Throws FileError.
void set_aside_newer(const std::string& folder, std::int64_t step, Observer& observer);

/// Removes the checkpoints of `folder` that `state` does not keep. Throws FileError.
void remove_old_checkpoints(const std::string& folder, const TrainerState& state);

}  // namespace polyhead::train
