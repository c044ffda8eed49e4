#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "polyhead/train/checkpoint.h"
#include "train/hdf5.h"

/// What is inside a checkpoint's file: see write_checkpoint(). Failures throw FileError without the name of the file.
namespace polyhead::train {

/// Bytes before HDF5 begins, which hold the header.
inline constexpr std::size_t checkpoint_header_size = 512;

/// The header of a checkpoint with `content`.
std::string checkpoint_header(std::span<const std::byte> content);

/// Throws when `file` has a header of another format version.
void check_version(std::span<const std::byte> file);

/// Throws unless `file`, which check_version() let pass, begins with the header of what follows it.
void verify_checkpoint(std::span<const std::byte> file);

/// Writes groups, arrays and texts.
void store_checkpoint(hdf5::Writer& writer, const Checkpoint& checkpoint);

/// Reads what verify_checkpoint() let pass. The content may be anybody's: it is refused unless it is laid out as
/// store_checkpoint() does it, with values that are finite, counts that are not negative, state that is a JSON object of
/// at most 1 MiB, and configuration in UTF-8. Takes time in proportion to the file's size, and memory of at most 16 times
/// that size and 64 MiB.
Checkpoint parse_checkpoint(std::span<const std::byte> file);

}  // namespace polyhead::train
