#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "polyhead/core/unicode.h"
#include "support/any_text.h"
#include "tools/program.h"

/// Any text through the program: as many lines out as in.
namespace polyhead::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::int64_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

/// strange_file() with a word of a megabyte, and a last line without an end.
const std::string& strange_text() {
  static const std::string text =
      strange_file() + "\n" + std::string(1'000'000, 'x') + "\nthe end, without an end";
  return text;
}
std::int64_t strange_count() { return lines_in(strange_text()) + 1; }

const std::string& strange_path() {
  static const std::string path = write_text("strange.txt", strange_text());
  return path;
}

/// A model that has seen all of it in a few updates.
std::string strange_run(const std::string& tokenizer) {
  const std::string out = fresh_path("run");
  const Outcome outcome =
      run({"train", tiny_config(), "--out", out, "--set", "data.task=files", "--set",
           "data.train.source=" + strange_path(), "--set", "data.train.target=" + strange_path(), "--set",
           "tokenizer=" + tokenizer, "--set", "training.max_steps=4"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("train: " + std::to_string(strange_count()) + " pairs"));
  return out;
}

void expect_lines_of_text(const Outcome& outcome, std::int64_t count) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines_in(outcome.out), count);
  EXPECT_TRUE(unicode::is_valid(outcome.out));
  EXPECT_EQ(outcome.out.find_first_of(std::string("\0\r", 2)), std::string::npos);
}

class AnyTextThroughTheProgram : public ::testing::TestWithParam<const char*> {};

TEST_P(AnyTextThroughTheProgram, NLinesInNLinesOut) {
  const std::string model = strange_run(GetParam());
  const Outcome text = run({"translate", model, "--set", "decoding.max_length_extra=3"}, strange_text());
  expect_lines_of_text(text, strange_count());
  EXPECT_THAT(text.err, HasSubstr("stdin: 6 lines with invalid UTF-8, repaired with U+FFFD"));
  EXPECT_EQ(text.out.substr(0, 1), "\n") << "an empty line stays one";

  // The pieces of a translation are scored as they are, whatever they are spelled like.
  const Outcome pieces = run({"translate", model, "--set", "decoding.max_length_extra=3", "--pieces",
                              "--scores", "--input", strange_path()});
  expect_lines_of_text(pieces, strange_count());
  std::string only_pieces;
  std::vector<double> scores;
  std::istringstream lines(pieces.out);
  for (std::string line; std::getline(lines, line);) {
    scores.push_back(std::stod(line));
    only_pieces += line.substr(line.find('\t') + 1) + "\n";
  }
  const Outcome scored = run({"score", model, "--source", strange_path(), "--target",
                              write_text("pieces.txt", only_pieces), "--pieces"});
  expect_lines_of_text(scored, strange_count());
  std::istringstream again(scored.out);
  std::size_t i = 0;
  for (std::string line; std::getline(again, line); ++i) EXPECT_NEAR(std::stod(line), scores[i], 1e-3) << i;
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, AnyTextThroughTheProgram,
                         ::testing::Values("{kind: word, normalization: nfkc, shared: false}", "{kind: char}",
                                           "{kind: sentencepiece, vocab_size: 140}"));

TEST(AnyTextThroughMetrics, IsEqualToItself) {
  const std::string path = strange_path();
  const Outcome outcome = run({"metrics", "--hypothesis", path, "--reference", path, "--metrics",
                               "bleu,chrf,exact_match,token_accuracy", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  for (const char* metric : {"bleu", "chrf", "exact_match", "token_accuracy"})
    EXPECT_NEAR(report.at(metric).at("score"), 100, 1e-6) << metric;
}

TEST(AnyTextThroughCommands, NoTextIsNoLine) {
  const std::string empty = write_text("empty.txt", ""), model = trained_run();
  for (const std::string text : {"", "\xEF\xBB\xBF"}) {
    const Outcome outcome = run({"translate", model}, text);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(run({"translate", model}, "\n").out, "\n");
  EXPECT_EQ(lines_in(run({"translate", model}, "\r").out), 1);
  EXPECT_EQ(run({"score", model, "--source", empty, "--target", empty}).out, "");
  for (const Arguments& command : std::vector<Arguments>{
           {"evaluate", model, "--source", empty, "--target", empty},
           {"metrics", "--hypothesis", empty, "--reference", empty},
           {"train", tiny_config(), "--out", fresh_path("run"), "--set", "data.task=files", "--set",
            "data.train.source=" + empty, "--set", "data.train.target=" + empty}}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 3) << ::testing::PrintToString(command) << outcome.out << outcome.err;
  }
}

}  // namespace
}  // namespace polyhead::testing
