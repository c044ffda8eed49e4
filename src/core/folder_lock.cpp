#include "polyhead/core/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "polyhead/core/error.h"

namespace polyhead {

FolderLock::FolderLock(const std::string& folder, std::string doing, Holder holder)
    : folder_(folder, O_RDONLY | O_DIRECTORY), doing_(std::move(doing)) {
  const bool children = holder == Holder::process_and_children;
  if (children) ::fcntl(folder_.id(), F_SETFD, 0);
  // The children of a killed process are gone a moment after it.
  require<FileError>(folder_.lock(std::chrono::seconds(children ? 1 : 0)), folder, ": is being ", doing_,
                     " by another process");
  require_in_place();
}

void FolderLock::require_in_place() const {
  struct stat own {
  }, named{};
  const std::string& path = folder_.name();
  const int error = ::fstat(folder_.id(), &own) < 0 || ::stat(path.c_str(), &named) < 0 ? errno : 0;
  require<FileError>(error == 0 || error == ENOENT || error == ENOTDIR, path,
                     ": cannot find the folder: ", std::generic_category().message(error));
  require<FileError>(error == 0 && named.st_ino == own.st_ino && named.st_dev == own.st_dev, path,
                     ": was moved or ", error == 0 ? "replaced" : "removed", " while it was ", doing_);
}

}  // namespace polyhead
