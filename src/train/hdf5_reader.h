#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "polyhead/tensor/tensor.h"

namespace polyhead::hdf5 {

enum class Type { float32, uint8, text };
/// "float32"
const char* name(Type type);

/// A view into the file.
struct Dataset {
  Type type = Type::float32;
  Shape shape;                        ///< scalar for text
  std::span<const std::byte> values;  ///< little-endian, row-major
};

/// A file that lies in memory as a whole, read without the HDF5 library, which on content made for it crashes, hangs or
/// opens other files. It knows what Writer makes (HDF5 file format specification 3.0: superblock 2, object headers 2, hard
/// links in headers or in fractal heaps, datasets in one piece, int64 attributes) and refuses everything else by name, so
/// that no link leads out of the file and nothing is decompressed. Takes every byte at most once: time and memory are
/// bounded by the size of the file, whatever it holds.
class Reader {
 public:
  /// `file` must outlive the reader; HDF5 begins after `user_block` bytes. Names are of up to 255 printable ASCII characters
  /// with those of their groups. Throws FileError, without the name of the file.
  Reader(std::span<const std::byte> file, std::size_t user_block);

  /// Paths, relative to `group`, of the datasets below it, sorted. Throws FileError when there is no such group.
  std::vector<std::string> datasets(const std::string& group) const;
  /// Throw FileError when there is no such dataset or attribute, or one of another type.
  const Dataset& dataset(const std::string& path, Type type) const;
  std::int64_t attribute(const std::string& group, const std::string& name) const;

 private:
  friend class Parser;
  std::set<std::string> groups_;
  std::map<std::string, Dataset> datasets_;
  std::map<std::string, std::int64_t> attributes_;  ///< by group/name
};

}  // namespace polyhead::hdf5
