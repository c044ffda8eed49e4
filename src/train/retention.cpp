#include "retention.h"

#include <filesystem>

#include "polyhead/core/error.h"
#include "polyhead/train/checkpoint.h"

namespace polyhead::train {

void set_aside_newer(const std::string& folder, std::int64_t step, Observer& observer) {
  for (const CheckpointFile& file : list_checkpoints(folder)) {
    if (file.step <= step) continue;
    const std::string aside = file.path + ".damaged";
    std::error_code error;
    std::filesystem::rename(file.path, aside, error);
    require<FileError>(!error, file.path, ": cannot rename: ", error.message());
    observer.message("set aside as " + aside);
  }
}

void remove_old_checkpoints(const std::string& folder, const TrainerState& state) {
  for (const CheckpointFile& file : list_checkpoints(folder)) {
    if (state.keeps(file.step)) continue;
    std::error_code error;
    std::filesystem::remove(file.path, error);
    require<FileError>(!error, file.path, ": cannot remove: ", error.message());
  }
}

}  // namespace polyhead::train
