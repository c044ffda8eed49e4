#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace polyhead::train {

/// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  /// The digest of all bytes added, as 64 lower-case hexadecimal digits. To be asked for once, at the end.
  std::string text();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// SHA-256 of `bytes`, as 64 lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace polyhead::train
