#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data_files.h"
#include "polyhead/core/unicode.h"
#include "polyhead/data/batches.h"
#include "polyhead/data/lines.h"
#include "support/any_text.h"

namespace polyhead::data {
namespace {

TEST(AnyText, BytesBecomeLines) {
  for (const auto& [bytes, line] : testing::strange_bytes())
    EXPECT_THAT(split_lines("x" + bytes).lines, ::testing::ElementsAre("x" + line));
  const Lines lines = split_lines(testing::strange_file());
  EXPECT_EQ(lines.lines, testing::strange_file_lines());
  EXPECT_EQ(lines.repaired, 6);
  for (const std::string& line : lines.lines) {
    EXPECT_TRUE(unicode::is_valid(line));
    EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](char c) { return c >= 0 && c < ' '; })) << line;
  }
  EXPECT_EQ(read_lines(TemporaryFile("strange.txt", testing::strange_file()).path()).lines, lines.lines);
}

TEST(AnyText, EveryByteIsPartOfALine) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(split_lines(all).lines.size(), 2U);
  EXPECT_EQ(split_lines(all + "\n\n" + all).lines.size(), 5U);
}

TEST(AnyText, BecomesACorpusOfEveryKindOfPieces) {
  const std::vector<std::string> lines = testing::strange_file_lines();
  for (const char* kind : {"word", "char"}) {
    text::TokenizerConfig config;
    config.kind = kind;
    const auto pipeline = text::TextPipeline::learn(config, false, lines, lines);
    ParallelText text;
    text.source = text.target = lines;
    const auto corpus = ParallelCorpus::encode(text, pipeline, {.skip_empty = false});
    ASSERT_EQ(corpus.size(), static_cast<std::int64_t>(lines.size()));
    for (std::int32_t i = 0; i < corpus.size(); ++i) {
      const auto ids = corpus.target(i);
      ASSERT_FALSE(ids.empty());
      EXPECT_EQ(ids.back(), text::eos_id);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), text::eos_id), 1);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), text::bos_id), 0);
    }
  }
}

}  // namespace
}  // namespace polyhead::data
