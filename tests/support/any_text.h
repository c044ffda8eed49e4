#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Text as it comes: what looks like markup of tokenizers, scripts and symbols of all kinds, and bytes that are no text.
namespace polyhead::testing {

/// Lines of well-formed UTF-8 without control characters, as data::split_lines gives them.
inline const std::vector<std::string>& strange_lines() {
  static const std::vector<std::string> lines{
      "",
      " ",
      "\u2028",
      "a\u2028b\u2029c\u0085d",
      "<s>",
      "</s>",
      "<unk>",
      "<s> a </s> <unk> b <pad> <mask> <0x0A>",
      "</s></s>",
      "\u2581",
      "\u2581\u2581 a\u2581b \u2581c",
      "@@",
      "un@@ happy@@",
      "\u2047",
      "\uFFFD",
      "e\u0301\u0323 A\u030A \u0308a",
      "\u05E9\u05DC\u05D5\u05DD \u202Eabc\u202C \u0645\u0631\u062D\u0628\u0627",
      "\U0001F469\u200D\U0001F469\u200D\U0001F467 \U0001F3F3\uFE0F\u200D\U0001F308 \U0001F44D\U0001F3FD",
      "\u200B\u200D\u00AD",
      "\uFEFFa",
      "\U0010FFFF\uFFFE",
      "\uFDFA \uFB03 \u00BD \u2460",
      "\u0130\u1E9E\u0149 \u03A3\u039F\u03A3",
      "a\u00A0b\u3000c\u2003d",
      "||| 0 ||| a ||| -1.5",
      "&lt;b&gt; &quot; &amp;amp;",
      "\\n \\0 %s %n {} $(true) ; `true`",
      "NaN -inf 1e400 0x10",
      "\u0915\u094D\u0937\u093F \u0E01\u0E33 \u1100\u1161\u11A8",
  };
  return lines;
}

/// Lines as bytes, each with what split_lines makes of it, without their ends.
inline const std::vector<std::pair<std::string, std::string>>& strange_bytes() {
  const std::string bad = "\uFFFD";
  const auto times = [&](int n) {
    std::string result;
    while (n-- > 0) result += bad;
    return result;
  };
  static const std::vector<std::pair<std::string, std::string>> lines{
      // The Unicode Standard 15.0, tables 3-8 to 3-11: non-shortest forms, surrogates, others, and truncated sequences.
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", times(8) + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", times(8) + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", times(5) + "A" + times(2) + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", times(4) + "A"},
      {"\x80\xBF\xC1\xFE\xFF", times(5)},
      {"a\xE2\x82", "a" + bad},
      {std::string("a\0b\0", 4), "a b "},
      {"tab\tbell\x07"
       "escape\x1B[31m",
       "tab bell escape [31m"},
      {"a\rb", "a b"},
      {"\xEF\xBF\xBD", bad},
  };
  return lines;
}

/// A file of all of them: the first with a byte order mark, some with CR LF, the last without an end.
inline std::string strange_file() {
  std::string bytes = "\xEF\xBB\xBF";
  int count = 0;
  for (const std::string& line : strange_lines()) bytes += line + (++count % 3 == 0 ? "\r\n" : "\n");
  for (const auto& [line, repaired] : strange_bytes()) bytes += line + "\n";
  return bytes + "the last line";
}
/// Its lines.
inline std::vector<std::string> strange_file_lines() {
  std::vector<std::string> lines = strange_lines();
  for (const auto& [line, repaired] : strange_bytes()) lines.push_back(repaired);
  lines.emplace_back("the last line");
  return lines;
}

}  // namespace polyhead::testing
