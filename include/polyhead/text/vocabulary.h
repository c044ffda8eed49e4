#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace polyhead::text {

/// The ids every vocabulary begins with. There is no padding id: batches are packed.
inline constexpr std::int32_t unk_id = 0, bos_id = 1, eos_id = 2, special_ids = 3;
inline constexpr std::string_view special_pieces[] = {"<unk>", "<s>", "</s>"};
/// What text holds where an unknown piece was: U+2047.
inline constexpr std::string_view unknown_surface = "\u2047";

/// A one-to-one map between pieces and the ids 0 … size() − 1.
class Vocabulary {
 public:
  /// The special pieces alone.
  Vocabulary() : Vocabulary(std::vector<std::string>{}) {}
  /// The special pieces, then `ordinary` in order. Throws DataError when a piece is empty, special or there
  /// twice.
  explicit Vocabulary(const std::vector<std::string>& ordinary);
  /// The pieces counted most often, equal counts in code point order, at most `max_size` ids with the special
  /// ones. Pieces spelled as a special one are left out.
  static Vocabulary most_frequent(const std::unordered_map<std::string, std::int64_t>& counts,
                                  std::int32_t max_size);

  std::int32_t size() const { return static_cast<std::int32_t>(pieces_.size()); }
  /// The id of an ordinary piece; unk_id for every other, special ones included: text never yields <s> or
  /// </s>.
  std::int32_t id(std::string_view piece) const;
  /// Throws DataError unless 0 <= id < size().
  const std::string& piece(std::int32_t id) const;
  /// All pieces by id.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

}  // namespace polyhead::text
