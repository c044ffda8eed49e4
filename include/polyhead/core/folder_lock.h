#pragma once

#include <string>

#include "polyhead/core/file.h"

namespace polyhead {

/// Keeps a folder to one process, by flock(2): the system lets go of it when the process ends, however it ends, and no file
/// is left.
class FolderLock {
 public:
  enum class Holder {
    process,
    process_and_children  ///< those that it starts have the descriptor too: the lock lasts until all of them have ended
  };
  /// `doing` says in messages what the process does with the folder, as "trained". Throws FileError when another process does
  /// so already.
  FolderLock(const std::string& folder, std::string doing, Holder holder = Holder::process);

  /// Throws FileError unless the folder is still where it was locked. The lock goes with a folder that is moved, and files are
  /// written by path: without this, before all that is written or removed, they would be those of a folder that another
  /// process made in its place.
  void require_in_place() const;

 private:
  File folder_;
  std::string doing_;
};

}  // namespace polyhead
