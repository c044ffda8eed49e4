#include "polyhead/core/unicode.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <cstdint>

#include "polyhead/core/error.h"

namespace polyhead::unicode {

namespace {

/// The code point at `offset`, which moves past it; negative for an ill-formed subsequence.
UChar32 next(std::string_view text, std::size_t& offset) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  UChar32 code_point = 0;
  U8_NEXT(bytes, offset, text.size(), code_point);
  return code_point;
}

void append(std::string& text, UChar32 code_point) {
  std::uint8_t bytes[U8_MAX_LENGTH];
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, code_point);
  text.append(reinterpret_cast<const char*>(bytes), size);
}

bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

icu::UnicodeString to_utf16(std::string_view text) {
  require<DataError>(text.size() < (1u << 30), "a text of ", text.size(), " bytes is too long for one line");
  return icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
}

std::string to_utf8(const icu::UnicodeString& text) {
  std::string result;
  text.toUTF8String(result);
  return result;
}

using NormalizerInstance = const icu::Normalizer2* (*)(UErrorCode&);

std::string normalize(std::string_view text, NormalizerInstance instance) {
  if (is_ascii(text)) return std::string(text);
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = instance(status);
  require(U_SUCCESS(status), "ICU has no normalisation data: ", u_errorName(status));
  const icu::UnicodeString normalized = normalizer->normalize(to_utf16(text), status);
  require(U_SUCCESS(status), "ICU could not normalise a text: ", u_errorName(status));
  return to_utf8(normalized);
}

}  // namespace

bool is_valid(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();)
    if (next(text, offset) < 0) return false;
  return true;
}

std::string repair(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t begin = offset;
    if (next(text, offset) < 0)
      append(result, 0xFFFD);
    else
      result.append(text, begin, offset - begin);
  }
  return result;
}

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> result;
  result.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();)
    result.push_back(static_cast<char32_t>(next(text, offset)));
  return result;
}

std::string encode(char32_t code_point) {
  std::string result;
  append(result, static_cast<UChar32>(code_point));
  return result;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  result.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t begin = offset;
    next(text, offset);
    result.emplace_back(text.substr(begin, offset - begin));
  }
  return result;
}

std::string lowercase(std::string_view text) {
  if (!is_ascii(text)) return to_utf8(to_utf16(text).toLower(icu::Locale::getRoot()));
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string nfc(std::string_view text) { return normalize(text, icu::Normalizer2::getNFCInstance); }

std::string nfkc(std::string_view text) { return normalize(text, icu::Normalizer2::getNFKCInstance); }

bool is_space(char32_t code_point) {
  if (code_point >= 0x1C && code_point <= 0x1F) return true;
  return u_isUWhiteSpace(static_cast<UChar32>(code_point));
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> pieces;
  std::size_t piece = 0;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t begin = offset;
    if (!is_space(static_cast<char32_t>(next(text, offset)))) continue;
    if (begin > piece) pieces.emplace_back(text.substr(piece, begin - piece));
    piece = offset;
  }
  if (text.size() > piece) pieces.emplace_back(text.substr(piece));
  return pieces;
}

std::string strip(std::string_view text) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    if (is_space(static_cast<char32_t>(next(text, offset)))) continue;
    if (begin > start) begin = start;
    end = offset;
  }
  return begin < end ? std::string(text.substr(begin, end - begin)) : std::string();
}

}  // namespace polyhead::unicode
