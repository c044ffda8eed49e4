#pragma once

#include <string>
#include <string_view>
#include <vector>

/// UTF-8 text through ICU. Every function takes valid UTF-8 unless it says otherwise.
namespace polyhead::unicode {

/// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_valid(std::string_view text);
/// `text` with every maximal ill-formed subsequence replaced by U+FFFD. Takes any bytes.
std::string repair(std::string_view text);
/// The code points of `text`.
std::vector<char32_t> code_points(std::string_view text);
std::string encode(char32_t code_point);
/// `text` cut into its code points, each as UTF-8.
std::vector<std::string> characters(std::string_view text);

/// Full lower-casing of the root locale (as Python's str.lower()).
std::string lowercase(std::string_view text);
std::string nfc(std::string_view text);
std::string nfkc(std::string_view text);

/// White space as Python's str.isspace() has it: Unicode White_Space plus U+001C to U+001F.
bool is_space(char32_t code_point);
/// `text` cut at runs of is_space(), without empty pieces (as Python's str.split()).
std::vector<std::string> split(std::string_view text);
/// `text` without is_space() at both ends.
std::string strip(std::string_view text);

}  // namespace polyhead::unicode
