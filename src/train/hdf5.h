#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polyhead/tensor/tensor.h"

/// Writes HDF5 files in memory, through the C API. Failures throw FileError without the name of a file. What is read is
/// read by hdf5_reader.h.
namespace polyhead::hdf5 {

/// An HDF5 identifier, closed at the end.
class Handle {
 public:
  /// Throws FileError "HDF5 cannot <action>" when `id` stands for a failure.
  Handle(hid_t id, herr_t (*close)(hid_t), std::string_view action);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// Keeps HDF5 from printing its own errors.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// A new file in memory. Paths have no leading slash; groups on the way are made. Equal calls give equal
/// bytes.
class Writer {
 public:
  /// `user_block` bytes (a power of two, at least 512) stay free at the front; `expected_bytes` of content.
  Writer(std::size_t user_block, std::size_t expected_bytes);
  void group(const std::string& path);
  void floats(const std::string& path, const Shape& shape, std::span<const float> values);
  void bytes(const std::string& path, std::string_view values);
  /// A scalar string of fixed length, UTF-8.
  void text(const std::string& path, std::string_view value);
  void attribute(const std::string& group, const char* name, std::int64_t value);
  /// The file with its user block, valid until the next call.
  std::span<std::byte> image();

 private:
  void dataset(const std::string& path, hid_t file_type, hid_t memory_type, const Handle& space,
               const void* data);
  Silence silence_;
  std::size_t user_block_;
  Handle file_;
  std::set<std::string> groups_;
};

}  // namespace polyhead::hdf5
