#include "run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "polyhead/core/error.h"

namespace polyhead::train {

RunLock::RunLock(const std::string& folder)
    : id_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  require<FileError>(id_ >= 0, folder, ": cannot open the folder: ", std::generic_category().message(errno));
  // Any other failure means that the file system has no locks, which is no reason not to train.
  if (::flock(id_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(id_);
  throw FileError(folder + ": is being trained by another process");
}

RunLock::~RunLock() { ::close(id_); }

}  // namespace polyhead::train
