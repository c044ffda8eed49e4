#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "polyhead/core/error.h"

namespace polyhead {

/// Memory has run out. No Error: those are of what was given, and whoever has opened a file adds its name to them.
class MemoryError : public std::bad_alloc {
 public:
  /// `what` could not be had, as "33554432 bytes". The message adds what to change.
  explicit MemoryError(const std::string& what);
  const char* what() const noexcept override { return message_.what(); }

 private:
  std::runtime_error message_;  // copied without an exception
};

/// Throws a MemoryError unless `bytes` can be had now: for libraries that crash where they get none.
void require_room(std::size_t bytes);

/// What `bytes` take of memory that asks for huge pages.
constexpr std::int64_t in_huge_pages(std::int64_t bytes) {
  constexpr std::int64_t page = 2 << 20;
  return (bytes + page - 1) / page * page;
}

/// Bytes of memory that the process has resident now (Linux: /proc/self/statm).
std::int64_t resident_bytes();

/// The most that it ever had.
std::int64_t peak_resident_bytes();

/// Bytes of address space that it has.
std::int64_t address_space_bytes();

/// Bytes of address space that it may have; the largest number where nothing limits it (RLIMIT_AS).
std::int64_t address_space_limit();

/// The most bytes that a process with `resident` of them can have within its control groups (Linux, versions 1 and 2) and what
/// other processes hold there; the largest number where nothing limits it. Read from the file system under `root`.
std::int64_t control_group_limit(std::int64_t resident, const std::string& root = "/");

/// The most bytes that the process can have resident: what it has and what the machine has available (MemAvailable), within
/// control_group_limit() and the limits of the process (RLIMIT_AS, RLIMIT_DATA).
std::int64_t memory_limit();

}  // namespace polyhead
