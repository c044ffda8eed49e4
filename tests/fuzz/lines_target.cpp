#include <algorithm>
#include <string>

#include "memory_file.h"
#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"
#include "polyhead/data/lines.h"
#include "polyhead/text/normalizer.h"
#include "targets.h"

namespace polyhead::fuzz {
namespace {

void check_line(const std::string& line) {
  expect(unicode::is_valid(line), "a line is not UTF-8");
  expect(std::none_of(line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }),
         "a line has control characters");
  for (const auto form : {text::Normalization::none, text::Normalization::nfc, text::Normalization::nfkc}) {
    for (const bool lowercase : {false, true}) {
      const text::Normalizer normalizer{form, lowercase};
      const std::string normal = normalizer(line);
      expect(unicode::is_valid(normal) && normalizer(normal) == normal,
             "normalised text can be normalised further");
      std::string words;
      for (const std::string& word : unicode::split(normal)) words += (words.empty() ? "" : " ") + word;
      expect(words == normal, "normalised text has other space than single blanks");
    }
  }
}

}  // namespace

void lines(std::string_view input) {
  const data::Lines read = data::split_lines(input);
  const auto breaks = std::count(input.begin(), input.end(), '\n');
  const auto count = static_cast<std::ptrdiff_t>(read.lines.size());
  expect(count == breaks || count == breaks + 1, "another number of lines than of line ends");
  for (const std::string& line : read.lines) check_line(line);
  try {
    const MemoryFile file(input);
    const bool plain = !input.starts_with("\x1f\x8b");
    const data::Lines of_file = data::read_lines(file.path());
    expect(!plain || of_file.lines == read.lines, "a file is read as other lines");
  } catch (const DataError&) {
  }
}

}  // namespace polyhead::fuzz
