#include "frame.h"

#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"

namespace polyhead::text {

std::string number(std::uint64_t value) {
  std::string bytes(8, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

std::string counted(std::string_view text) { return number(text.size()).append(text); }

std::string frame(std::string_view tag, std::string_view payload) {
  return std::string(tag) + number(hash(payload)) + counted(payload);
}

std::string_view unframe(std::string_view tag, std::string_view framed) {
  require<FileError>(framed.starts_with(tag), "stored vocabulary: expected ", framed.size(),
                     " bytes to begin with \"", tag, "\"");
  Reader reader(framed.substr(tag.size()));
  const std::uint64_t digest = reader.number();
  const std::string_view payload = reader.text();
  require<FileError>(reader.done(), "stored vocabulary: bytes after its end");
  require<FileError>(hash(payload) == digest, "stored vocabulary: damaged (its digest differs)");
  return payload;
}

std::string_view Reader::take(std::uint64_t size) {
  require<FileError>(size <= rest_.size(), "stored vocabulary: ends too early (", size, " bytes expected, ",
                     rest_.size(), " left)");
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::uint64_t Reader::number() {
  std::uint64_t value = 0;
  const std::string_view bytes = take(8);
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string_view Reader::text() { return take(number()); }

}  // namespace polyhead::text
