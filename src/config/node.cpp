#include "polyhead/config/node.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "numbers.h"
#include "polyhead/config/settings.h"
#include "polyhead/core/unicode.h"
#include "shorten.h"

namespace polyhead::config {
namespace {

bool is_letter(char32_t c) { return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z'); }
bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }

/// Control characters, and what YAML readers take for a line break or a byte order mark.
bool needs_escape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 || c == 0xFEFF;
}

/// Words that some version of YAML reads as something other than text.
bool is_reserved(std::string_view text) {
  static constexpr std::array words{"true", "false", "yes", "no", "on", "off", "y", "n", "null"};
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(words.begin(), words.end(), lower) != words.end();
}

/// Whether `text` means itself without quotes in every context. Starts like a word or a path, so never a
/// number.
bool is_plain(std::string_view text) {
  if (text.empty() || text.back() == ' ' || is_reserved(text) || !unicode::is_valid(text)) return false;
  const std::vector<char32_t> points = unicode::code_points(text);
  const auto is_special = [](char32_t c) {
    constexpr std::u32string_view allowed = U" _./+-@%=";
    return c < 0x80 ? !is_letter(c) && !is_digit(c) && allowed.find(c) == allowed.npos : needs_escape(c);
  };
  const char32_t first = points.front();
  const bool path = text.starts_with("./") || text.starts_with("../");
  return (is_letter(first) || first == U'/' || first == U'_' || first >= 0x80 || path) &&
         std::none_of(points.begin(), points.end(), is_special);
}

}  // namespace

std::string shortened(std::string_view text, std::size_t length) {
  const std::string valid = unicode::repair(text.substr(0, 4 * length + 4));
  std::size_t end = 0, count = 0;
  for (; end < valid.size(); ++end)
    if ((valid[end] & 0xC0) != 0x80 && ++count > length) break;
  return end == valid.size() && text.size() <= 4 * length + 4 ? valid : valid.substr(0, end) + "...";
}

std::string one_line(std::string_view text, std::size_t length) {
  std::string result = quoted_text(shortened(text, length));
  result = result.substr(1, result.size() - 2);
  for (std::size_t at = 0; (at = result.find('\\', at)) != result.npos; ++at)
    if (result[at + 1] == '"' || result[at + 1] == '\\') result.erase(at, 1);
  return result;
}

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, node] : members)
    if (name == key) return &node;
  return nullptr;
}

void unexpected(const Node& node, std::string_view expected) {
  throw Unexpected{node.place, "", given(node) + ", expected " + std::string(expected)};
}

std::string given(const Node& node) {
  switch (node.kind) {
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::mapping:
      return "a mapping";
    case Node::Kind::scalar:
      break;
    default:
      return "nothing";
  }
  const std::string text = shortened(node.text, 60);
  const bool one_word = text.find_first_not_of("0123456789.+-_abcdefxoABCDEFXO") == text.npos;
  const bool literal = (one_word && looks_like_number(text)) || text == "true" || text == "false";
  if (!literal) return quoted_text(text);
  return node.quoted ? "the text " + quoted_text(text) : text;
}

std::string scalar_text(std::string_view text) {
  return is_plain(text) ? std::string(text) : quoted_text(text);
}

std::string flow_text(const Node& node) {
  std::string text;
  switch (node.kind) {
    case Node::Kind::scalar: {
      const bool number =
          looks_like_number(node.text) && node.text.find_first_not_of("0123456789.+-eE") == node.text.npos;
      const bool literal = number || node.text == "true" || node.text == "false";
      return literal && !node.quoted ? node.text : scalar_text(node.text);
    }
    case Node::Kind::sequence:
      for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + flow_text(item);
      return "[" + text + "]";
    case Node::Kind::mapping:
      for (const auto& [key, value] : node.members)
        text += (text.empty() ? "" : ", ") + scalar_text(key) + ": " + flow_text(value);
      return "{" + text + "}";
    default:
      return "null";
  }
}

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char32_t c : unicode::code_points(unicode::repair(text))) {
    std::array<char, 16> escape{};
    if (c == U'\n')
      result += "\\n";
    else if (c == U'\t')
      result += "\\t";
    else if (c == U'"' || c == U'\\')
      (result += '\\') += static_cast<char>(c);
    else if (needs_escape(c)) {
      std::snprintf(escape.data(), escape.size(), c < 0x100 ? "\\x%02X" : "\\u%04X",
                    static_cast<unsigned>(c));
      result += escape.data();
    } else
      result += unicode::encode(c);
  }
  return result + '"';
}

}  // namespace polyhead::config
