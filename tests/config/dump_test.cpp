#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "settings.h"

using polyhead::config::difference;
using polyhead::config::Difference;
using polyhead::config::document;
using polyhead::config::dump;
using settings::parse;
using ::testing::ElementsAre;

TEST(Dump, WritesEveryFieldInTheOrderOfTheList) {
  EXPECT_EQ(dump(settings::Run{}),
            R"(name: run
seed: 1
model:
  d_model: 128
  heads: 4
  head_dim: null
  norm: post
  dropout: 0.1
  bias: true
training:
  max_steps: 1000
  adam:
    betas: [0.9, 0.98]
    eps: 1.0e-09
  metrics: [loss]
  flags: []
)");
}

TEST(Dump, ReadsBackAsTheSameValue) {
  settings::Run run;
  run.seed = std::numeric_limits<std::uint64_t>::max();
  run.model = {6, {{1, 2, 0}, true}, 7, settings::Norm::none, 1.0 / 3, false};
  run.training.max_steps = std::numeric_limits<std::int64_t>::min();
  run.training.adam = {{0.1 + 0.2, 5e-324, 1 - 1e-16}, std::numeric_limits<double>::max()};
  run.training.flags = {true, false};
  EXPECT_EQ(parse(dump(run)), run);
  EXPECT_EQ(dump(parse(dump(run))), dump(run));
}

TEST(Dump, QuotesStringsOnlyWhereNeeded) {
  const auto text = [](const std::string& value) { return polyhead::config::scalar_text(value); };
  for (const std::string plain : {"run", "data/train.en", "./a", "../a-b_c", "/abs path/x.gz", "a1",
                                  "Gr\xC3\xB6\xC3\x9F"
                                  "e",
                                  "x=y"})
    EXPECT_EQ(text(plain), plain);
  for (const std::string quoted :
       {"",     " a", "a ",   "12",  "1e5", "-1",         "+1",    ".5",   "0x10", "true", "False",
        "null", "~",  "yes",  "No",  "on",  "OFF",        "y",     "a: b", "a:",   "a #b", "# a",
        "[a",   "{a", "a, b", "*a",  "&a",  "!a",         "|",     ">",    "%a",   "@a",   "`a",
        "'a'",  "?",  "- a",  "---", "...", "2024-01-01", "12:30", ".inf", "<<",   "="})
    EXPECT_EQ(text(quoted), '"' + std::string(quoted == "'a'" ? "'a'" : quoted) + '"');
  EXPECT_EQ(text("say \"a\\b\""), R"("say \"a\\b\"")");
  EXPECT_EQ(text("a\nb\tc\r\x01\x7F"), R"("a\nb\tc\x0D\x01\x7F")");
  EXPECT_EQ(text("\xC2\x85\xE2\x80\xA8\xEF\xBB\xBF"), R"("\x85\u2028\uFEFF")");
}

TEST(Dump, EveryStringReadsBack) {
  settings::Run run;
  run.training.metrics.clear();
  for (int c = 1; c < 0x250; ++c) {
    std::string character(1, static_cast<char>(c));
    if (c >= 0x80) character = {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
    for (const std::string& text : {character, "a" + character + "b", "a " + character, character + " a"})
      run.training.metrics.push_back(text);
  }
  for (const char* text : {"\xE2\x80\xA9", "\xF0\x9F\x98\x80", "null", "~", "a: b", "a #b", "- a", "---",
                           "x\r\ny", "  ", "\\x41"})
    run.training.metrics.push_back(text);
  EXPECT_EQ(parse(dump(run)).training.metrics, run.training.metrics);
  for (std::size_t i = 0; i < run.training.metrics.size(); i += 7) {
    settings::Run named;
    named.name = run.training.metrics[i];
    EXPECT_EQ(parse(dump(named)).name, named.name);
  }
}

TEST(Difference, ListsChangedSettingsWithBothValues) {
  settings::Run a, b;
  EXPECT_THAT(difference(a, b), ElementsAre());
  b.model.head_dim = 8;
  b.training.adam.betas = {0.9};
  b.name = "1";
  EXPECT_THAT(difference(a, b),
              ElementsAre(Difference{"name", "run", "\"1\""}, Difference{"model.head_dim", "null", "8"},
                          Difference{"training.adam.betas", "[0.9, 0.98]", "[0.9]"}));
}

TEST(Document, ListsEveryKey) {
  EXPECT_EQ(
      document<settings::Run>(),
      R"(| key                   | value                                      | default       | meaning                        |
| --------------------- | ------------------------------------------ | ------------- | ------------------------------ |
| `name`                | text; not empty                            | `run`         | what the run is called         |
| `seed`                | an integer                                 | `1`           | of everything random           |
| `model.d_model`       | an integer; at least 1                     | `128`         | features of a position         |
| `model.heads`         | an integer or a list of them; at least 0   | `4`           | attention heads                |
| `model.head_dim`      | an integer or null; between 1 and 1024     | `null`        | features of a head             |
| `model.norm`          | one of pre, post, no                       | `post`        | where layers normalise         |
| `model.dropout`       | a number; at least 0 and below 1           | `0.1`         | share of features dropped      |
| `model.bias`          | true or false                              | `true`        | whether projections add a bias |
| `training.max_steps`  | an integer; at most 1000000                | `1000`        | updates at most                |
| `training.adam.betas` | a list, each a number; above 0 and below 1 | `[0.9, 0.98]` | decay of the moments           |
| `training.adam.eps`   | a number; above 0                          | `1.0e-09`     | added to the denominator       |
| `training.metrics`    | a list, each text; not empty               | `[loss]`      | what to validate on            |
| `training.flags`      | a list, each true or false                 | `[]`          | a\|b                           |
)");
}
