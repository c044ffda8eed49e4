#include "polyhead/config/codec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "numbers.h"
#include "polyhead/core/error.h"

namespace polyhead::config {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Signed {
  bool negative;
  std::string_view magnitude;
};
Signed split_sign(std::string_view text) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  return {text.starts_with('-'), has_sign ? text.substr(1) : text};
}

/// What to write for an integer in a notation that YAML versions disagree on (010, 0x10, 0o7, 0b1); else "".
std::string decimal_spelling(std::string_view text) {
  const auto [negative, magnitude] = split_sign(text);
  const std::string sign = negative ? "-" : "";
  if (magnitude.size() < 2 || magnitude[0] != '0') return "";
  if (all_digits(magnitude)) {
    const std::size_t first = std::min(magnitude.find_first_not_of('0'), magnitude.size() - 1);
    return sign + std::string(magnitude.substr(first));
  }
  const int letter = std::tolower(static_cast<unsigned char>(magnitude[1]));
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (base == 0) return "";
  std::uint64_t value = 0;
  const char* end = magnitude.data() + magnitude.size();
  const auto [stop, error] = std::from_chars(magnitude.data() + 2, end, value, base);
  return error == std::errc{} && stop == end ? sign + std::to_string(value) : "";
}

enum class Reading { ok, not_a_number, out_of_range };

Reading read_number(std::string_view text, double& value) {
  const auto [negative, magnitude] = split_sign(text);
  if (!looks_like_number(magnitude) || split_sign(magnitude).magnitude != magnitude)
    return Reading::not_a_number;
  const char* end = magnitude.data() + magnitude.size();
  const auto [stop, error] = std::from_chars(magnitude.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return Reading::not_a_number;
  if (error != std::errc{}) return Reading::out_of_range;
  if (negative) value = -value;
  return Reading::ok;
}

bool is_infinity_or_nan(std::string_view text) {
  std::string word(split_sign(text).magnitude);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word.starts_with('.')) word.erase(0, 1);
  return word == "inf" || word == "nan" || word == "infinity";
}

bool is_plain_scalar(const Node& node) { return node.kind == Node::Kind::scalar && !node.quoted; }

}  // namespace

bool looks_like_number(std::string_view text) {
  std::string_view rest = split_sign(text).magnitude;
  if (rest.starts_with('.')) rest.remove_prefix(1);
  return !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
}

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  char* const last = buffer.data() + buffer.size();
  const bool integral = std::abs(value) < 1e15 && std::trunc(value) == value;
  const auto [end, error] = integral ? std::to_chars(buffer.data(), last, value, std::chars_format::fixed)
                                     : std::to_chars(buffer.data(), last, value);
  std::string text(buffer.data(), end);
  // YAML 1.1 takes 1e-05 for text; 1.0e-05 is a number to every reader.
  const std::size_t exponent = text.find('e');
  if (exponent != text.npos && text.find('.') == text.npos) text.insert(exponent, ".0");
  return text;
}

bool Codec<bool>::read(const Node& node) {
  if (!is_plain_scalar(node) || (node.text != "true" && node.text != "false")) unexpected(node, type());
  return node.text == "true";
}

template <class T>
T IntegerCodec<T>::read(const Node& node) {
  if (!is_plain_scalar(node)) unexpected(node, type());
  const std::string& text = node.text;
  if (const std::string decimal = decimal_spelling(text); !decimal.empty())
    unexpected(node, concat("a decimal integer: write ", decimal));
  const auto [negative, magnitude] = split_sign(text);
  if (!all_digits(magnitude)) {
    double number = 0;
    const bool integral =
        read_number(text, number) == Reading::ok && std::abs(number) < 1e15 && std::trunc(number) == number;
    unexpected(node, integral ? concat("an integer: write ", static_cast<std::int64_t>(number)) : type());
  }
  T value{};
  const std::string digits = concat(negative ? "-" : "", magnitude);
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end)
    unexpected(node, concat("an integer between ", std::numeric_limits<T>::min(), " and ",
                            std::numeric_limits<T>::max()));
  return value;
}
template struct IntegerCodec<int>;
template struct IntegerCodec<std::int64_t>;
template struct IntegerCodec<std::uint64_t>;

double Codec<double>::read(const Node& node) {
  if (!is_plain_scalar(node)) unexpected(node, type());
  if (const std::string decimal = decimal_spelling(node.text); !decimal.empty())
    unexpected(node, concat("a decimal number: write ", decimal));
  if (is_infinity_or_nan(node.text)) unexpected(node, "a finite number");
  double value = 0;
  const Reading reading = read_number(node.text, value);
  if (reading == Reading::not_a_number) unexpected(node, type());
  if (reading == Reading::out_of_range) unexpected(node, "a number that a double can hold");
  return value;
}

std::string Codec<double>::text(double value) { return number_text(value); }

std::string Codec<std::string>::read(const Node& node) {
  if (node.kind != Node::Kind::scalar) unexpected(node, type());
  // A path with one would be cut short by the operating system.
  if (node.text.find('\0') != node.text.npos) unexpected(node, "text without NUL characters");
  return node.text;
}

}  // namespace polyhead::config
