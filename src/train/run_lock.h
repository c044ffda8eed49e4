#pragma once

#include <string>

#include "polyhead/core/file.h"

namespace polyhead::train {

/// Keeps a run to one process that trains it, by flock(2) on its folder: the system lets go of it when the process
/// ends, however it ends, and no file is left.
class RunLock {
 public:
  /// Throws FileError when another process trains the run.
  explicit RunLock(const std::string& folder);

 private:
  File folder_;
};

}  // namespace polyhead::train
