#pragma once

#include <string>

namespace polyhead::train {

/// Keeps a run to one process that trains it, by flock(2) on its folder: the system lets go of it when the process
/// ends, however it ends, and no file is left.
class RunLock {
 public:
  /// Throws FileError when another process trains the run.
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int id_;
};

}  // namespace polyhead::train
