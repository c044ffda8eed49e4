#include "polyhead/data/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data_files.h"
#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"

namespace polyhead::data {
namespace {

DataConfig toy(const std::string& task, int train = 300, int valid = 50, int test = 60) {
  DataConfig config;
  config.task = task;
  config.train_size = train;
  config.valid_size = valid;
  config.test_size = test;
  return config;
}

TEST(Tasks, HaveTheSizesAskedFor) {
  for (const Task& task : tasks()) {
    const DataConfig config = toy(std::string(task.name));
    EXPECT_EQ(generate(config, Split::train, 1).source.size(), 300u);
    EXPECT_EQ(generate(config, Split::valid, 1).target.size(), 50u);
    EXPECT_EQ(generate(config, Split::test, 1).source.size(), 60u);
  }
  EXPECT_EQ(generate(toy("copy"), Split::test, 1).name, "copy (test)");
}

TEST(Tasks, NoSentenceOccursTwice) {
  for (const Task& task : tasks()) {
    const DataConfig config = toy(std::string(task.name), 5000, 500, 500);
    std::set<std::string> seen;
    for (const Split split : {Split::train, Split::valid, Split::test}) {
      for (const std::string& line : generate(config, split, 3).source) {
        EXPECT_TRUE(seen.insert(line).second) << line;
      }
    }
    EXPECT_EQ(seen.size(), 6000u);
  }
}

TEST(Tasks, AreAFunctionOfTheSeed) {
  for (const Task& task : tasks()) {
    const DataConfig config = toy(std::string(task.name));
    EXPECT_EQ(generate(config, Split::train, 1).source, generate(config, Split::train, 1).source);
    EXPECT_NE(generate(config, Split::test, 1).source, generate(config, Split::test, 2).source);
    EXPECT_EQ(generate(config, Split::test, 1).source,
              generate(toy(std::string(task.name), 900), Split::test, 1).source);
  }
}

TEST(Tasks, TargetsAreWhatTheTaskSays) {
  const auto check = [](const char* task, const auto& expected) {
    const ParallelText text = generate(toy(task), Split::train, 5);
    for (std::size_t i = 0; i < text.source.size(); ++i) {
      auto words = unicode::split(text.source[i]);
      EXPECT_GE(words.size(), 3u);
      EXPECT_LE(words.size(), 12u);
      expected(words);
      EXPECT_EQ(unicode::split(text.target[i]), words) << text.source[i];
    }
  };
  using Words = std::vector<std::string>;
  check("copy", [](Words&) {});
  check("reverse", [](Words& words) { std::reverse(words.begin(), words.end()); });
  check("sort", [](Words& words) { std::sort(words.begin(), words.end()); });
}

TEST(Tasks, NumbersTrainOnTheShortOnes) {
  const DataConfig config = toy("numbers", 3000, 200, 200);
  std::set<std::string> known;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const auto text = generate(config, split, 1);
    known.insert(text.source.begin(), text.source.end());
  }
  for (int number = 0; number < 1000; ++number) EXPECT_TRUE(known.count(english_number(number))) << number;
}

TEST(Tasks, SayWhenTheyHaveTooFewSentences) {
  EXPECT_EQ(message_of<Error>([] { generate(toy("cpoy"), Split::train, 1); }),
            "data.task: \"cpoy\" is no toy task");
  EXPECT_EQ(message_of<DataError>([] { generate(toy("numbers", 1'000'000), Split::valid, 1); }),
            "data.task numbers: train_size, valid_size and test_size are 1000110 sentences together; at most "
            "500000");
}

}  // namespace
}  // namespace polyhead::data
