#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polyhead::data {

/// Lines of text as valid UTF-8.
struct Lines {
  std::vector<std::string> lines;
  /// Lines that held invalid UTF-8.
  std::int64_t repaired = 0;
};

/// Splits bytes into lines on '\n' only, so that U+2028 and other separators stay inside a line. The last
/// line counts without its '\n' too; nothing after the last '\n' is no line. One '\r' before the '\n' (or the
/// end) and a byte order mark at the very beginning are removed. Every control character U+0000 to U+001F
/// becomes a space; every maximal ill-formed UTF-8 subsequence, encoded surrogates included, becomes U+FFFD.
Lines split_lines(std::string_view bytes);

/// The most text that is read from a file, unpacked: a quarter of the machine's memory.
std::size_t most_text();

/// The bytes of a file, decompressed when they begin with gzip's magic number.
/// Throws DataError that names a file that is missing, a folder, unreadable, damaged or torn gzip, or of more than `most`
/// bytes, as devices are that never end.
std::string read_bytes(const std::string& path, std::size_t most = most_text());

/// split_lines(read_bytes(path)).
Lines read_lines(const std::string& path);

}  // namespace polyhead::data
