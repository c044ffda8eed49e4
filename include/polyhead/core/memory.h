#pragma once

#include <cstdint>

namespace polyhead {

/// Bytes of memory that the process has resident now (Linux: /proc/self/statm).
std::int64_t resident_bytes();

/// The most that it ever had.
std::int64_t peak_resident_bytes();

}  // namespace polyhead
