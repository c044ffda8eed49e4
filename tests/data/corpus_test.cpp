#include "polyhead/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_files.h"
#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"

namespace polyhead::data {
namespace {

using ::testing::ElementsAre;

text::TextPipeline words(const ParallelText& text) {
  text::TokenizerConfig config;
  config.kind = "word";
  config.shared = false;
  return text::TextPipeline::learn(config, false, text.source, text.target);
}

TEST(ReadParallel, ReadsBothSides) {
  const TemporaryFile source("s.txt", "a\nb \xFF\n"), target("t.txt", "x\r\ny");
  const ParallelText text = read_parallel({source.path(), target.path()});
  EXPECT_THAT(text.source, ElementsAre("a", "b \uFFFD"));
  EXPECT_THAT(text.target, ElementsAre("x", "y"));
  EXPECT_EQ(text.repaired, 1);
}

TEST(ReadParallel, UnequalLineCounts) {
  const TemporaryFile source("s.txt", "a\nb\nc\n"), target("t.txt", "x\ny");
  EXPECT_EQ(message_of<DataError>([&] {
              read_parallel({source.path(), target.path()});
            }),
            source.path() + " has 3 lines, but " + target.path() + " has 2");
}

TEST(ReadParallel, RefusesPipesAndDevices) {
  const TemporaryFile file("s.txt", "a\n");
  for (const FilePair& files : {FilePair{"/dev/null", file.path()}, FilePair{file.path(), "/dev/null"}})
    EXPECT_EQ(message_of<DataError>([&] { read_parallel(files); }),
              "data file /dev/null: not a regular file");
}

TEST(LoadText, FilesOfASplit) {
  const TemporaryFile source("s.txt", "a\n"), target("t.txt", "x\n");
  DataConfig config;
  config.valid = {source.path(), target.path()};
  EXPECT_TRUE(has_split(config, Split::valid));
  EXPECT_FALSE(has_split(config, Split::test));
  EXPECT_THAT(load_text(config, Split::valid, 1).target, ElementsAre("x"));
  try {
    load_text(config, Split::train, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "data.train: no files are given");
    EXPECT_EQ(error.status(), Status::usage);
  }
}

TEST(ParallelCorpus, EncodesWithEnds) {
  const ParallelText text{"t", {"a b", "b"}, {"x", "y x y"}, 0};
  const auto corpus = ParallelCorpus::encode(text, words(text), {});
  ASSERT_EQ(corpus.size(), 2);
  EXPECT_THAT(corpus.source(0), ElementsAre(4, 3, text::eos_id));
  EXPECT_THAT(corpus.target(1), ElementsAre(4, 3, 4, text::eos_id));
  EXPECT_EQ(corpus.source_length(0), 3);
  EXPECT_EQ(corpus.target_length(1), 4);
  EXPECT_EQ(corpus.target_tokens(), 6);
}

TEST(ParallelCorpus, DropsEmptyAndLongPairsAndCountsThem) {
  const ParallelText text{
      "t", {"a", "", "b c d", "\u2028", "a b", "c"}, {"x", "y", "x", "x", "", "x y z"}, 2};
  const Filter filter{.skip_empty = true, .max_length = 2};
  const auto corpus = ParallelCorpus::encode(text, words(text), filter);
  EXPECT_EQ(corpus.size(), 1);
  const CorpusReport& report = corpus.report();
  EXPECT_EQ(report.read, 6);
  EXPECT_EQ(report.kept, 1);
  EXPECT_EQ(report.empty, 3);
  EXPECT_EQ(report.too_long, 2);
  EXPECT_EQ(report.summary("train", filter),
            "train: 6 pairs, 1 kept, 3 empty, 2 longer than 2 pieces, 2 lines with invalid UTF-8 repaired");
}

TEST(ParallelCorpus, KeepsEverythingWhenAsked) {
  const ParallelText text{"t", {"a", "", "b c d"}, {"x", "y", ""}, 0};
  const Filter everything{.skip_empty = false, .max_length = 0};
  const auto corpus = ParallelCorpus::encode(text, words(text), everything);
  EXPECT_EQ(corpus.size(), 3);
  EXPECT_THAT(corpus.source(1), ElementsAre(text::eos_id));
  EXPECT_EQ(corpus.report().summary("valid", everything), "valid: 3 pairs, 3 kept");
}

TEST(ParallelCorpus, NeedsAUsablePair) {
  const ParallelText text{"a.en and a.de", {"a", "b b"}, {"", "x"}, 0};
  EXPECT_EQ(message_of<DataError>([&] { ParallelCorpus::encode(text, words(text), {.max_length = 1}); }),
            "no usable sentence pair in a.en and a.de: 2 pairs, 0 kept, 1 empty, 1 longer than 1 pieces");
  EXPECT_EQ(message_of<DataError>([&] {
              ParallelCorpus::encode({"none", {}, {}, 0}, words(text), {});
            }),
            "no usable sentence pair in none: 0 pairs, 0 kept");
}

TEST(DataConfig, RoundTripsAsYaml) {
  const auto config = config::parse<DataConfig>(
      "{task: files, train: {source: a.en, target: a.de}, lowercase: true, max_length: 50}", "d.yaml");
  EXPECT_EQ(config.train.source, "a.en");
  EXPECT_EQ(config.train.target, "a.de");
  EXPECT_TRUE(config.lowercase);
  EXPECT_EQ(config.max_length, 50);
  EXPECT_EQ(config::parse<DataConfig>(config::dump(config), "d.yaml"), config);
}

TEST(DataConfig, SaysWhatIsWrong) {
  const auto problem = [](const char* yaml) {
    return message_of<Error>([&] { config::parse<DataConfig>(yaml, "d.yaml"); });
  };
  EXPECT_EQ(problem("task: numebrs"), "d.yaml:1: task: \"numebrs\", expected one of files, " + task_names());
  EXPECT_EQ(problem("train:\n  source: a.en"), "d.yaml:1: train.target: missing beside source a.en");
  EXPECT_THAT(problem("max_length: 0"), ::testing::HasSubstr("max_length"));
}

}  // namespace
}  // namespace polyhead::data
