#include "polyhead/core/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
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

std::string advice() {
  const std::int64_t limit = address_space_limit();
  return concat(
      "; expected smaller batches (training.batch_tokens, decoding.batch_tokens), fewer --threads, ",
      limit == unlimited ? "or a smaller model"
                         : concat("or more address space than ", limit / 1024, " KiB (ulimit -v)"));
}

/// Where a version of control groups says what their memory is.
struct Controller {
  const char *folder, *limit;
  /// In memory.stat: what the processes of a group hold and cannot be taken from them as cached files can.
  std::array<std::string_view, 2> held;
};
constexpr Controller version_2{"sys/fs/cgroup", "memory.max", {"anon", "shmem"}};
constexpr Controller version_1{"sys/fs/cgroup/memory", "memory.limit_in_bytes", {"total_rss", "total_shmem"}};

std::int64_t held_bytes(const std::filesystem::path& folder, const Controller& controller) {
  std::ifstream file(folder / "memory.stat");
  std::int64_t sum = 0, bytes = 0;
  for (std::string name; file >> name >> bytes;)
    if (std::find(controller.held.begin(), controller.held.end(), name) != controller.held.end())
      sum += bytes;
  return sum;
}

/// The least that `group` and those that it is in leave to a process; those without a limit have "max" or no such file.
std::int64_t least_limit(const std::filesystem::path& root, const Controller& controller,
                         std::filesystem::path group, std::int64_t resident) {
  std::int64_t least = unlimited;
  for (group = group.relative_path();; group = group.parent_path()) {
    const std::filesystem::path folder = root / controller.folder / group;
    std::ifstream file(folder / controller.limit);
    if (std::int64_t limit = 0; file >> limit) {
      const std::int64_t others = std::max<std::int64_t>(held_bytes(folder, controller) - resident, 0);
      least = std::min(least, std::max<std::int64_t>(limit - others, 0));
    }
    if (group.empty()) return least;
  }
}

}  // namespace

MemoryError::MemoryError(const std::string& what)
    // NOLINTNEXTLINE(bugprone-throw-keyword-missing): a member, not an exception that is to be thrown
    : message_(concat("out of memory: no room for ", what, advice())) {}

void require_room(std::size_t bytes) {
  void* room =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require<MemoryError>(room != MAP_FAILED, bytes, " bytes");
  munmap(room, bytes);
}

std::int64_t resident_bytes() { return sizes().second; }

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t address_space_bytes() { return sizes().first; }

std::int64_t address_space_limit() { return resource_limit(RLIMIT_AS); }

std::int64_t control_group_limit(std::int64_t resident, const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::int64_t least = unlimited;
  for (std::string line; std::getline(file, line);) {
    std::istringstream parts(line);
    std::string number, controllers, group;  // whose name may have colons too
    std::getline(std::getline(std::getline(parts, number, ':'), controllers, ':'), group);
    if (controllers.empty()) least = std::min(least, least_limit(root, version_2, group, resident));
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = std::min(least, least_limit(root, version_1, group, resident));
  }
  return least;
}

std::int64_t memory_limit() {
  const std::int64_t resident = resident_bytes();
  return std::min({resident + available_bytes(), control_group_limit(resident), address_space_limit(),
                   resource_limit(RLIMIT_DATA)});
}

}  // namespace polyhead
