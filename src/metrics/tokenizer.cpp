#include "polyhead/metrics/tokenizer.h"

#include <array>

#include "names.h"
#include "polyhead/core/unicode.h"

namespace polyhead::metrics {

namespace {

struct Row {
  std::string_view name;
  Tokenizer tokenize;
};

constexpr std::array<Row, 3> tokenizers{{
    {"13a", tokenize_13a},
    {"none", tokenize_none},
    {"char", tokenize_char},
}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_not_digit(char c) { return !is_digit(c); }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }
bool is_dash(char c) { return c == '-'; }

/// ASCII symbols other than the apostrophe, comma, dash and period, which depend on their neighbours.
bool is_symbol(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0; (at = text.find(from)) != text.npos; text.remove_prefix(at + from.size()))
    result.append(text.substr(0, at)).append(to);
  return result.append(text);
}

std::string resolve_entities(std::string text) {
  text = replace_all(text, "<skipped>", "");
  text = replace_all(text, "-\n", "");
  text = replace_all(text, "\n", " ");
  // The order matters: "&amp;lt;" ends up as "<".
  text = replace_all(text, "&quot;", "\"");
  text = replace_all(text, "&amp;", "&");
  text = replace_all(text, "&lt;", "<");
  return replace_all(text, "&gt;", ">");
}

std::string isolate_symbols(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_symbol(c))
      result.append({' ', c, ' '});
    else
      result += c;
  }
  return result;
}

enum class Isolate { first, second };

/// Puts spaces around one byte of every pair of neighbours for which `first` and `second` hold; pairs do
/// not overlap. Bytes serve as well as characters, as the isolated one is always ASCII.
template <class First, class Second>
std::string isolate(std::string_view text, First first, Second second, Isolate which) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      result += text[i];
      continue;
    }
    if (which == Isolate::first)
      result.append({' ', text[i], ' ', text[i + 1]});
    else
      result.append({text[i], ' ', text[i + 1], ' '});
    ++i;
  }
  return result;
}

}  // namespace

std::vector<std::string> tokenize_none(std::string_view line) { return unicode::split(line); }

std::vector<std::string> tokenize_char(std::string_view line) {
  std::vector<std::string> tokens;
  for (const std::string& word : unicode::split(line))
    for (std::string& character : unicode::characters(word)) tokens.push_back(std::move(character));
  return tokens;
}

std::vector<std::string> tokenize_13a(std::string_view line) {
  std::string text = concat(" ", resolve_entities(unicode::strip(line)), " ");
  text = isolate_symbols(text);
  text = isolate(text, is_not_digit, is_period_or_comma, Isolate::second);
  text = isolate(text, is_period_or_comma, is_not_digit, Isolate::first);
  text = isolate(text, is_digit, is_dash, Isolate::second);
  return unicode::split(text);
}

std::vector<std::string> tokenizer_names() { return names_of(tokenizers); }

Tokenizer find_tokenizer(const std::string& name) {
  return find_row(tokenizers, "metric tokenizer", name).tokenize;
}

}  // namespace polyhead::metrics
