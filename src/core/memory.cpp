#include "polyhead/core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "polyhead/core/error.h"

namespace polyhead {

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  require(static_cast<bool>(file >> size >> resident), "/proc/self/statm: cannot be read");
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace polyhead
