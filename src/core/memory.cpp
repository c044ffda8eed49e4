#include "polyhead/core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

namespace polyhead {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// Bytes of address space, and resident.
std::pair<std::int64_t, std::int64_t> sizes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  require(static_cast<bool>(file >> size >> resident), "/proc/self/statm: cannot be read");
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  return {size * page, resident * page};
}

std::int64_t resource_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, unlimited));
}

std::int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name; file.ignore(unlimited, '\n')) {
    std::int64_t kibibytes = 0;
    if (name == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

/// The lowest limit in `file` of a control group below `root` and of those that it is in; those without one have "max" or
/// none such file.
std::int64_t group_limit(const std::filesystem::path& root, std::filesystem::path group, const char* file) {
  std::int64_t lowest = unlimited;
  for (group = group.relative_path();; group = group.parent_path()) {
    std::ifstream in(root / group / file);
    std::int64_t limit = 0;
    if (in >> limit) lowest = std::min(lowest, limit);
    if (group.empty()) return lowest;
  }
}

std::int64_t control_group_limit() {
  std::ifstream file("/proc/self/cgroup");
  std::int64_t lowest = unlimited;
  for (std::string line; std::getline(file, line);) {
    std::istringstream parts(line);
    std::string number, controllers, path;
    std::getline(std::getline(std::getline(parts, number, ':'), controllers, ':'), path);
    if (number == "0" && controllers.empty())
      lowest = std::min(lowest, group_limit("/sys/fs/cgroup", path, "memory.max"));
    if (controllers == "memory")
      lowest = std::min(lowest, group_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return lowest;
}

}  // namespace

std::int64_t resident_bytes() { return sizes().second; }

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t address_space_bytes() { return sizes().first; }

std::int64_t address_space_limit() { return resource_limit(RLIMIT_AS); }

std::int64_t memory_limit() {
  return std::min({resident_bytes() + available_bytes(), control_group_limit(), address_space_limit(),
                   resource_limit(RLIMIT_DATA)});
}

}  // namespace polyhead
