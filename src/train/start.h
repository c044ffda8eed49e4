#pragma once

#include <optional>

#include "polyhead/train/checkpoint.h"
#include "polyhead/train/run_folder.h"
#include "polyhead/train/trainer.h"

namespace polyhead::train {

/// Throws FileError when the folder holds a run.
void require_no_run(const RunFolder& folder);

/// The newest checkpoint of a run that goes on which is not damaged; none when the run has no checkpoint. Throws FileError
/// when all are damaged or one cannot be read for another reason, Error when a setting changed that is neither limit nor
/// interval.
std::optional<Checkpoint> resume_point(const Config& config, const RunFolder& folder, Observer& observer);

/// The checkpoint that training.initial_checkpoint names. Throws Error when the configuration asks for other tokenizers
/// than it has.
Checkpoint initial_checkpoint(const Config& config, Observer& observer);

}  // namespace polyhead::train
