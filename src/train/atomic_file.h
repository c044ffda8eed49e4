#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace polyhead::train {

/// Replaces `path` by a file of `bytes`, or leaves it as it was: written beside it, synced, renamed. Throws
/// FileError with path and reason; no temporary file is left.
void replace_file(const std::string& path, std::span<const std::byte> bytes);

/// All bytes of a regular file. Throws FileError with path and reason.
std::vector<std::byte> read_file(const std::string& path);

}  // namespace polyhead::train
