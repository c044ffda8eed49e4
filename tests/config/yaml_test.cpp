#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "settings.h"

using settings::message;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Yaml, AllProblemsAreReportedInTheOrderOfTheirLines) {
  EXPECT_EQ(message("model:\n  d_model: 0\n  hads: 4\nnmae: x\nseed: x\n", {"model.heads=6.5"}),
            "run.yaml:2: model.d_model: 0, expected at least 1\n"
            "run.yaml:3: model.hads: unknown key, did you mean model.heads?\n"
            "run.yaml:4: nmae: unknown key, did you mean name?\n"
            "run.yaml:5: seed: \"x\", expected an integer\n"
            "--set model.heads=6.5: model.heads: 6.5, expected an integer");
}

TEST(Yaml, UnknownKeysSuggestTheNearest) {
  EXPECT_EQ(message("modle: {}"), "run.yaml:1: modle: unknown key, did you mean model?");
  EXPECT_EQ(message("training:\n  adam:\n    beta: []"),
            "run.yaml:3: training.adam.beta: unknown key, did you mean training.adam.betas?");
  for (const std::string far : {"foo", "k0", "\"\"", "model.foo", "a_name_that_is_like_none"})
    EXPECT_EQ(message(far + ": 1"), "run.yaml:1: " + far + ": unknown key");
  EXPECT_EQ(message("dropout: 0.3"), "run.yaml:1: dropout: unknown key, did you mean model.dropout?");
  EXPECT_EQ(message("training: {max-steps: 3}"),
            "run.yaml:1: training.max-steps: unknown key, did you mean training.max_steps?");
  EXPECT_EQ(message("\"se\\ned\": 3"), "run.yaml:1: \"se\\ned\": unknown key");
}

TEST(Yaml, DuplicateKeysAreRefused) {
  EXPECT_EQ(message("model:\n  heads: 4\n  norm: pre\n  heads: 8\n"),
            "run.yaml:4: model.heads: given twice, first at run.yaml:2");
  EXPECT_EQ(message("seed: 1\nmodel: {}\nseed: 1\n"), "run.yaml:3: seed: given twice, first at run.yaml:1");
}

TEST(Yaml, UnsupportedYamlIsRefused) {
  const std::string anchors = "anchors and aliases are not supported: write the value out";
  EXPECT_EQ(message("seed: &s 3\n"), "run.yaml:1: seed: " + anchors);
  EXPECT_EQ(message("seed: &s 3\nname: *s\n"),
            "run.yaml:1: seed: " + anchors + "\nrun.yaml:2: name: " + anchors);
  EXPECT_EQ(message("model: &m {d_model: 8}\n"), "run.yaml:1: model: " + anchors);
  EXPECT_EQ(message("training: {metrics: [a, &b c]}\n"), "run.yaml:1: training.metrics[1]: " + anchors);
  EXPECT_EQ(message("model:\n  <<: {d_model: 8}\n"),
            "run.yaml:2: model: merge keys (<<) are not supported: write the values out");
  const std::string tags = "tags are not supported: write the value alone";
  EXPECT_EQ(message("seed: !!int 3\n"), "run.yaml:1: seed: " + tags);
  EXPECT_EQ(message("model: !!map {d_model: 8}\n"), "run.yaml:1: model: " + tags);
  EXPECT_EQ(message("training: {metrics: !x [a]}\n"), "run.yaml:1: training.metrics: " + tags);
  EXPECT_EQ(message("seed: 1\n---\nseed: 2\n"), "run.yaml:2: a second document, expected one");
  EXPECT_EQ(message("[a]: 1\n"), "run.yaml:1: a list as a key, expected a name");
  EXPECT_EQ(message("~: 1\n"), "run.yaml:1: nothing as a key, expected a name");
}

TEST(Yaml, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(message("seed: 1\nmodel: {d_model: 8\n"), StartsWith("run.yaml:3: not valid YAML: "));
  EXPECT_THAT(message("seed: 1\n  name: x\n"), StartsWith("run.yaml:2: not valid YAML: "));
  EXPECT_THAT(message("seed: *nowhere\n"), StartsWith("run.yaml:1: not valid YAML: "));
}

TEST(Yaml, QuotesMustBeClosed) {
  const std::string open = "run.yaml:2: name: a quote that is never closed";
  EXPECT_EQ(message("seed: 1\nname: \"x\n"), open);
  EXPECT_EQ(message("seed: 1\nname: 'x\n\n"), open);
  EXPECT_EQ(message("seed: 1\nname: 'it''\n"), open);
  EXPECT_EQ(message("seed: 1\nname: \"x\\\"\n"), open);
  EXPECT_EQ(message("\xEF\xBB\xBFseed: 1 # \xC3\xB6\r\nname: \"x\r\n"), open);
  EXPECT_EQ(settings::parse("\xEF\xBB\xBFseed: 1 # \xC3\xB6\r\nname: 'it''s' # \xC3\xB6\r\n").name, "it's");
  EXPECT_EQ(settings::parse("training: {metrics: [\"\xC3\xB6 \\\"\", '''']}").training.metrics[1], "'");
}

TEST(Yaml, TextThatIsNoMappingIsRefused) {
  EXPECT_EQ(message(""), "run.yaml: empty, expected a mapping of settings");
  EXPECT_EQ(message("# only a comment\n"), "run.yaml: empty, expected a mapping of settings");
  EXPECT_EQ(message("\n- 1\n"), "run.yaml:2: a list, expected a mapping of settings");
  EXPECT_EQ(message("hello"), "run.yaml:1: \"hello\", expected a mapping of settings");
}

TEST(Yaml, BytesThatAreNoTextAreRefused) {
  EXPECT_EQ(message("seed: 1\nname: \xFF\n"), "run.yaml:2: not UTF-8 text");
  EXPECT_EQ(message(std::string("seed: 1\0", 8)), "run.yaml:1: a NUL byte, expected text");
  EXPECT_EQ(message("name: \"a\\0b\""),
            "run.yaml:1: name: \"a\\x00b\", expected text without NUL characters");
  EXPECT_EQ(message("seed: 1\n\nname: \x1B[0m"), "run.yaml:3: control character 27, expected text");
  EXPECT_EQ(settings::parse("\xEF\xBB\xBFseed: 7\r\nname: Gr\xC3\xB6\xC3\x9F"
                            "e\r\n")
                .name,
            "Gr\xC3\xB6\xC3\x9F"
            "e");
}

TEST(Yaml, SizeAndDepthAreLimited) {
  const std::string too_large = "run.yaml: larger than 262144 bytes, too large for a configuration";
  EXPECT_EQ(message("seed: 1\n" + std::string(262144, '#')), too_large);
  EXPECT_EQ(message("seed: 1\n" + std::string(262136, '#')), "");
  const std::string too_deep = "run.yaml:2: nested more than 32 levels deep";
  for (const char* opening : {"[", "{", "- ", "? ", "[a: ", "{a: "}) {
    std::string text = "\n";
    while (text.size() < 200000) text += opening;
    EXPECT_EQ(message(text), too_deep) << opening;
  }
}

TEST(Yaml, VeryManyProblemsAreCounted) {
  std::string text;
  for (int i = 0; i < 103; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const std::string report = message(text);
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 100);
  EXPECT_THAT(report, ::testing::EndsWith("\nand 3 more like these"));
}

TEST(Overrides, ReplaceWhatTheFileSays) {
  const settings::Run run =
      settings::parse("model: {d_model: 64, heads: 8}",
                      {"model.heads=[2, 4]", "training.adam.eps=1e-3", "name=a=b", "seed=1", "seed=2",
                       "training.adam={betas: [0.5, 0.5]}", "model.head_dim=null"});
  EXPECT_EQ(run.model.d_model, 64);
  EXPECT_EQ(run.model.heads, (settings::Heads{{2, 4}, true}));
  EXPECT_EQ(run.name, "a=b");
  EXPECT_EQ(run.seed, 2u);
  EXPECT_EQ(run.training.adam, (settings::Adam{{0.5, 0.5}, 1e-9}));
}

TEST(Overrides, MendWhatTheFileGotWrong) { EXPECT_EQ(message("model: {heads: 6}", {"model.heads=8"}), ""); }

TEST(Overrides, AreNamedInMessages) {
  const auto fails = [](const std::string& setting) { return message("seed: 1", {setting}); };
  EXPECT_EQ(fails("model.heads=6"), "--set model.heads=6: model.heads: 6 does not divide d_model 128");
  EXPECT_EQ(fails("model.heds=6"), "--set model.heds=6: model.heds: unknown key, did you mean model.heads?");
  EXPECT_EQ(fails("modl.heads=6"), "--set modl.heads=6: modl: unknown key, did you mean model?");
  EXPECT_EQ(fails("seed.x=6"), "--set seed.x=6: seed: a mapping, expected an integer");
  EXPECT_EQ(fails("model=6"), "--set model=6: model: 6, expected a mapping");
  EXPECT_EQ(fails("name="), "--set name=: name: nothing, expected text");
  EXPECT_EQ(fails("seed=[1"), "--set seed=[1: not valid YAML: end of sequence flow not found");
  EXPECT_EQ(fails("seed=&a 1"),
            "--set seed=&a 1: anchors and aliases are not supported: write the value out");
}

TEST(Overrides, OfTheWrongFormAreRefused) {
  const std::string expected = ": expected key.path=value, such as model.heads=4";
  for (const std::string setting : {"seed", "=3", "", "model.=3", ".seed=3", "model..heads=3"})
    EXPECT_EQ(message("seed: 1", {setting}), "--set " + setting + expected);
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  EXPECT_THAT(message("seed: 1", {deep + "=1"}), HasSubstr(expected));
}

namespace {
class Load : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "polyhead_config_load";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) const {
    const std::filesystem::path path = folder_ / "run.yaml";
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  static std::string failure(const std::string& path) {
    try {
      polyhead::config::load<settings::Run>(path);
    } catch (const polyhead::Error& error) {
      return error.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};
}  // namespace

TEST_F(Load, ReadsAFile) {
  const std::string path = write("seed: 5\n");
  const std::vector<std::string> overrides{"name=b"};
  const auto run = polyhead::config::load<settings::Run>(path, overrides);
  EXPECT_EQ(run.seed, 5u);
  EXPECT_EQ(run.name, "b");
}

TEST_F(Load, NamesTheFileInMessages) {
  const std::string path = write("seed: x\n");
  EXPECT_EQ(failure(path), path + ":1: seed: \"x\", expected an integer");
}

TEST_F(Load, RefusesWhatIsNoConfigurationFile) {
  const std::string folder = folder_.string();
  EXPECT_EQ(failure(folder + "/none.yaml"),
            folder + "/none.yaml: no such file, expected a YAML configuration");
  EXPECT_EQ(failure(folder), folder + ": a folder, expected a YAML configuration");
  const std::string path = write("");
  EXPECT_EQ(failure(path), path + ": empty, expected a mapping of settings");
  EXPECT_EQ(failure(write(std::string(300000, ' '))),
            path + ": larger than 262144 bytes, too large for a configuration");
}
