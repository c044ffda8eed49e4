#include "polyhead/data/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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

std::vector<Pair> pairs(const char* task, int size = 500) {
  std::vector<Pair> result;
  each_pair(toy(task, size), Split::train, 5, [&](Pair&& pair) { result.push_back(std::move(pair)); });
  return result;
}

TEST(Tasks, AnnotatedPairsAreTheTextThatIsTrainedOn) {
  for (const Task& task : tasks()) {
    const ParallelText lines = generate(toy(std::string(task.name)), Split::test, 2);
    std::size_t i = 0;
    each_pair(toy(std::string(task.name)), Split::test, 2, [&](const Pair& pair) {
      EXPECT_EQ(text(pair.source), lines.source[i]);
      EXPECT_EQ(text(pair.target), lines.target[i++]);
    });
    EXPECT_EQ(i, 60u);
  }
}

TEST(Tasks, GoldAttentionFindsTheTokenThatIsCopied) {
  for (const char* task : {"copy", "reverse", "recall", "nearest"})
    for (const Pair& pair : pairs(task)) {
      ASSERT_EQ(pair.alignment.size(), pair.target.size());
      std::set<int> used;
      for (std::size_t i = 0; i < pair.target.size(); ++i) {
        const Link& link = pair.alignment[i];
        EXPECT_EQ(link.target, static_cast<int>(i));
        EXPECT_EQ(pair.source[static_cast<std::size_t>(link.source)], pair.target[i]);
        EXPECT_TRUE(used.insert(link.source).second);
      }
    }
}

TEST(Tasks, EqualLettersAreSortedFromEachOther) {
  std::size_t ties = 0;
  for (const Pair& pair : pairs("sort")) {
    std::vector<Link> expected;
    for (int t = 0; t < static_cast<int>(pair.target.size()); ++t)
      for (int s = 0; s < static_cast<int>(pair.source.size()); ++s) {
        const std::string& letter = pair.target[static_cast<std::size_t>(t)];
        if (pair.source[static_cast<std::size_t>(s)] != letter) continue;
        const bool sure = std::count(pair.source.begin(), pair.source.end(), letter) == 1;
        ties += sure ? 0 : 1;
        expected.push_back({s, t, sure});
      }
    EXPECT_EQ(pair.alignment, expected);
  }
  EXPECT_GT(ties, 0u);
}

TEST(Tasks, RecallLooksAfterTheSameLetter) {
  for (const Pair& pair : pairs("recall")) {
    const std::size_t query = pair.source.size() - 1;
    const auto key = std::find(pair.source.begin(), pair.source.end(), pair.source[query]);
    const auto at = key - pair.source.begin();
    ASSERT_LT(at, static_cast<std::ptrdiff_t>(query));
    EXPECT_EQ(pair.target, std::vector<std::string>{*(key + 1)});
    EXPECT_EQ(pair.source_tree.heads[query], at + 1);
    EXPECT_EQ(pair.source_tree.heads[static_cast<std::size_t>(at) + 1], at);
  }
}

TEST(Tasks, DyckTargetsCloseWhatIsOpen) {
  for (const Pair& pair : pairs("dyck")) {
    std::string open;
    std::vector<std::string> all = pair.source;
    all.insert(all.end(), pair.target.begin(), pair.target.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(i != pair.source.size() || !open.empty());
      if (all[i] == "(" || all[i] == "[") {
        open += all[i];
        continue;
      }
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), all[i] == ")" ? '(' : '[');
      open.pop_back();
    }
    EXPECT_TRUE(open.empty());
    EXPECT_EQ(pair.alignment.size(), pair.target.size());
    for (const Link& link : pair.alignment)
      EXPECT_NE(pair.source[static_cast<std::size_t>(link.source)],
                pair.target[static_cast<std::size_t>(link.target)]);
    for (std::size_t i = 0; i < pair.source.size(); ++i)
      EXPECT_EQ(pair.source_tree.heads[i] >= 0, pair.source[i] == ")" || pair.source[i] == "]");
  }
}

/// The answer does not depend on the order of the points, and is the same between the same two points.
TEST(Tasks, NearestIsConsistent) {
  std::map<std::string, std::set<std::string>> nearer;
  for (const Pair& pair : pairs("nearest", 3000)) {
    const std::string& query = pair.source.back();
    for (std::size_t i = 0; i + 1 < pair.source.size(); ++i) {
      if (pair.source[i] == pair.target[0]) continue;
      nearer[query].insert(pair.target[0] + " " + pair.source[i]);
      EXPECT_FALSE(nearer[query].contains(pair.source[i] + " " + pair.target[0])) << query;
    }
  }
  EXPECT_EQ(nearer.size(), 64u);
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
