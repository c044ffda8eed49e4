#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace polyhead::train {

/// SHA-256 (FIPS 180-4) of `bytes`, as 64 lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace polyhead::train
