#include "run_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "polyhead/core/error.h"

namespace polyhead::train {

RunLock::RunLock(const std::string& folder) : folder_(folder, O_RDONLY | O_DIRECTORY) {
  // Any other failure means that the file system has no locks, which is no reason not to train.
  require<FileError>(::flock(folder_.id(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, folder,
                     ": is being trained by another process");
}

}  // namespace polyhead::train
