#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace polyhead::text {

/// `text` with its length in front (8 bytes, little-endian).
std::string counted(std::string_view text);
std::string number(std::uint64_t value);

/// `payload` behind `tag`, its length and its FNV-1a digest.
std::string frame(std::string_view tag, std::string_view payload);
/// The payload. Throws FileError unless `framed` is exactly what frame() wrote for this tag.
std::string_view unframe(std::string_view tag, std::string_view framed);

/// Takes apart what counted() and number() wrote. Every call throws FileError when the bytes end too early.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::uint64_t number();
  std::string_view text();
  bool done() const { return rest_.empty(); }

 private:
  std::string_view take(std::uint64_t size);
  std::string_view rest_;
};

}  // namespace polyhead::text
