#include "polyhead/text/normalizer.h"

#include "polyhead/core/unicode.h"

namespace polyhead::text {
namespace {

std::string normalize(std::string_view line, Normalization form) {
  switch (form) {
    case Normalization::nfc:
      return unicode::nfc(line);
    case Normalization::nfkc:
      return unicode::nfkc(line);
    case Normalization::none:
      break;
  }
  return std::string(line);
}

}  // namespace

std::string Normalizer::operator()(std::string_view line) const {
  std::string text = normalize(line, normalization);
  if (lowercase) text = normalize(unicode::lowercase(text), normalization);
  std::string joined;
  joined.reserve(text.size());
  for (const std::string& word : unicode::split(text)) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  }
  return joined;
}

}  // namespace polyhead::text
