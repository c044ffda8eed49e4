#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "polyhead/core/error.h"

/// The bytes of an untrusted HDF5 file: nothing is read outside of them.
namespace polyhead::hdf5 {

using Bytes = std::span<const std::byte>;

/// The address of what does not exist.
inline constexpr std::uint64_t undefined = ~std::uint64_t{0};

/// Little-endian numbers and text, one after the other. Throws FileError at the end.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : rest_(bytes) {}
  std::size_t left() const { return rest_.size(); }

  Bytes take(std::uint64_t size) {
    require<FileError>(size <= rest_.size(), "an HDF5 structure ends too early");
    const Bytes taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  /// Of up to 8 bytes.
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    const Bytes bytes = take(size);
    for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
  }
  std::string_view text(std::uint64_t size) {
    const Bytes bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void expect(std::string_view signature, std::uint64_t version) {
    require<FileError>(text(signature.size()) == signature && number(1) == version,
                       "damaged or of another HDF5 format, expected ", signature, " of version ", version);
  }

 private:
  Bytes rest_;
};

/// A file, its addresses counted from `content`. Gives away no more bytes than it has, so that whoever reads it ends:
/// structures that are one another's parts, or each in a circle, run out of them.
class Pieces {
 public:
  explicit Pieces(Bytes content) : content_(content), left_(content.size()) {}

  Bytes claim(std::uint64_t address, std::uint64_t size) {
    require<FileError>(address <= content_.size() && size <= content_.size() - address,
                       "lies outside of the file: ", size, " bytes at ", address, " of ", content_.size());
    require<FileError>(size <= left_, "shares its place in the file with others");
    left_ -= static_cast<std::size_t>(size);
    return content_.subspan(static_cast<std::size_t>(address), static_cast<std::size_t>(size));
  }

 private:
  Bytes content_;
  std::size_t left_;
};

}  // namespace polyhead::hdf5
