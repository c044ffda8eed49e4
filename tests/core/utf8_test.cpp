#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "polyhead/core/unicode.h"

/// UTF-8 against the tables of the Unicode Standard, chapter 3.9.
namespace polyhead::unicode {
namespace {

struct Range {
  int low, high;
  bool has(int byte) const { return byte >= low && byte <= high; }
};
/// Table 3-7: well-formed byte sequences.
struct Row {
  std::array<Range, 4> bytes;
  std::size_t length;
};
constexpr Range any{0x80, 0xBF}, none{1, 0};
constexpr std::array<Row, 9> well_formed{{
    {{{{0x00, 0x7F}, none, none, none}}, 1},
    {{{{0xC2, 0xDF}, any, none, none}}, 2},
    {{{{0xE0, 0xE0}, {0xA0, 0xBF}, any, none}}, 3},
    {{{{0xE1, 0xEC}, any, any, none}}, 3},
    {{{{0xED, 0xED}, {0x80, 0x9F}, any, none}}, 3},
    {{{{0xEE, 0xEF}, any, any, none}}, 3},
    {{{{0xF0, 0xF0}, {0x90, 0xBF}, any, any}}, 4},
    {{{{0xF1, 0xF3}, any, any, any}}, 4},
    {{{{0xF4, 0xF4}, {0x80, 0x8F}, any, any}}, 4},
}};

/// What the table says of the beginning of `text`: how many bytes belong together, and whether they are a character.
struct Found {
  std::size_t length;
  bool whole;
};
Found look_up(std::string_view text) {
  Found best{1, false};
  for (const Row& row : well_formed) {
    std::size_t n = 0;
    while (n < row.length && n < text.size() && row.bytes[n].has(static_cast<unsigned char>(text[n]))) ++n;
    if (n == row.length) return {n, true};
    best.length = std::max(best.length, n);
  }
  return best;
}

std::string repaired_by_table(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Found found = look_up(text);
    result += found.whole ? std::string(text.substr(0, found.length)) : "\uFFFD";
    text.remove_prefix(found.length);
  }
  return result;
}

TEST(Utf8, EverySequenceOfTheTablesBoundaries) {
  constexpr std::array<int, 10> bytes{0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2, 0xFF};
  for (int lead = 0; lead < 256; ++lead)
    for (const int second : bytes)
      for (const int third : bytes)
        for (const int fourth : bytes) {
          std::string text;
          for (const int byte : {lead, second, third, fourth}) text += static_cast<char>(byte);
          for (std::size_t length = 1; length <= 4; ++length) {
            const std::string_view part = std::string_view(text).substr(0, length);
            const std::string expected = repaired_by_table(part);
            ASSERT_EQ(is_valid(part), expected == part) << ::testing::PrintToString(std::string(part));
            ASSERT_EQ(repair(part), expected) << ::testing::PrintToString(std::string(part));
          }
        }
}

TEST(Utf8, EveryCodePointIsItself) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = encode(c);
    ASSERT_TRUE(is_valid(text)) << static_cast<std::uint32_t>(c);
    ASSERT_EQ(code_points(text), std::vector<char32_t>{c});
    ASSERT_EQ(look_up(text).length, text.size());
  }
}

}  // namespace
}  // namespace polyhead::unicode
