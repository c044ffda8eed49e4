#include "character_map.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "polyhead/core/error.h"

namespace polyhead::text {
namespace {

void require_sound(bool condition) { require<FileError>(condition, "damaged SentencePiece model"); }

/// A message of Protocol Buffers, field by field.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  struct Field {
    std::uint64_t number;
    std::string_view bytes;  ///< of text, bytes and messages; else empty
  };
  Field next() {
    const std::uint64_t tag = varint();
    require_sound(tag <= UINT32_MAX);
    switch (tag & 7) {
      case 0:
        varint();
        return {tag >> 3, {}};
      case 1:
        take(8);
        return {tag >> 3, {}};
      case 2:
        return {tag >> 3, take(varint())};
      case 5:
        take(4);
        return {tag >> 3, {}};
      default:
        throw FileError("damaged SentencePiece model");
    }
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    throw FileError("damaged SentencePiece model");
  }
  std::string_view take(std::uint64_t size) {
    require_sound(size <= rest_.size());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_;
};

std::uint32_t number_at(std::string_view bytes, std::size_t i) {
  std::uint32_t value = 0;
  for (std::size_t k = 4; k-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i + k]);
  return value;
}

/// A double-array trie (Aoe 1989) as Darts-clone stores it. From a node at base b the byte c leads to unit b ⊕ c, if that is
/// labelled c; every unit has the base of the node behind it, and whether a value stands there.
class Trie {
 public:
  explicit Trie(std::string_view bytes)
      : units_(bytes.size() / 4), first_(units_.size(), none), next_(first_) {
    for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = number_at(bytes, 4 * i);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const std::size_t base = i ^ label(i);
      if (label(i) > 0xff || base >= units_.size()) continue;
      next_[i] = first_[base];
      first_[base] = static_cast<std::uint32_t>(i);
    }
  }

  /// Whether no text leads out of the trie, or to a value that is not below `values`.
  bool is_closed(std::size_t values) {
    if (units_.empty()) return false;
    std::vector<std::size_t> bases{child_base(0)};
    while (!bases.empty()) {
      const std::size_t base = bases.back();
      bases.pop_back();
      if ((base | 0xff) >= units_.size()) return false;
      // Taken from the list, so that no unit is visited twice.
      for (std::uint32_t i = std::exchange(first_[base], none); i != none; i = next_[i]) {
        const std::size_t child = child_base(i);
        const bool has_value = ((units_[i] >> 8) & 1) != 0;
        if (has_value && (child >= units_.size() || (units_[child] & 0x7fffffff) >= values)) return false;
        bases.push_back(child);
      }
    }
    return true;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  std::size_t label(std::size_t i) const { return units_[i] & 0x800000ff; }
  std::size_t child_base(std::size_t i) const {
    const std::uint32_t unit = units_[i], shift = (unit & (1U << 9)) >> 6;
    return i ^ static_cast<std::size_t>((unit >> 10) << shift);
  }
  std::vector<std::uint32_t> units_, first_, next_;
};

/// The size of a trie, the trie, and the texts that its values are places in, each ended by a zero.
void check_character_map(std::string_view map) {
  if (map.empty()) return;
  require_sound(map.size() > 4);
  const std::size_t size = number_at(map, 0);
  require_sound(size % 4 == 0 && size < map.size() - 4);
  const std::string_view texts = map.substr(4 + size);
  require_sound(texts.back() == '\0' && Trie(map.substr(4, size)).is_closed(texts.size()));
}

}  // namespace

void check_character_maps(std::string_view model) {
  constexpr std::uint64_t normalizer = 3, denormalizer = 5, character_map = 2;
  for (Message fields(model); !fields.done();) {
    const Message::Field field = fields.next();
    if (field.number != normalizer && field.number != denormalizer) continue;
    for (Message spec(field.bytes); !spec.done();)
      if (const Message::Field part = spec.next(); part.number == character_map)
        check_character_map(part.bytes);
  }
}

}  // namespace polyhead::text
