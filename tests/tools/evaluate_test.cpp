#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/program.h"

/// polyhead evaluate on the toy language.
namespace polyhead::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

void expect_estimate(const json& estimate) {
  ASSERT_EQ(estimate.size(), 3u);
  EXPECT_LE(0, estimate["low"]);
  EXPECT_LE(estimate["low"], estimate["score"]);
  EXPECT_LE(estimate["score"], estimate["high"]);
  EXPECT_LE(estimate["high"], 100);
}

/// What the lines of sentences say of targets is what the loss is made of.
void expect_loss(const std::vector<json>& lines, double loss) {
  double log_probability = 0, tokens = 0;
  for (const json& line : lines) {
    log_probability += line["log_probability"].get<double>();
    tokens += line["tokens"].get<double>();
  }
  EXPECT_NEAR(-log_probability / tokens, loss, 1e-5 * loss);
}

TEST(EvaluateGrammar, AddsWhatEachPhenomenonComesTo) {
  const std::string sentences = fresh_path("sentences");
  const Outcome outcome =
      run({"evaluate", grammar_run(), "--split", "test", "--json", "--sentences", sentences});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  for (const char* metric : {"bleu", "chrf", "exact_match", "loss"})
    EXPECT_TRUE(report[metric].contains("score")) << metric;
  EXPECT_EQ(report["all"]["sentences"], 30);
  EXPECT_EQ(report["all"]["chrf"]["score"], report["chrf"]["score"]);
  EXPECT_EQ(report["all"]["exact_match"]["score"], report["exact_match"]["score"]);
  EXPECT_GT(report["phenomena"].size(), 5u);

  // What the sentences' lines say adds up to the report.
  const std::vector<json> lines = read_json_lines(sentences);
  ASSERT_EQ(lines.size(), 30u);
  expect_loss(lines, report["loss"]["score"]);
  int probes = 0, slots = 0, contrasts = 0, without_attractors = 0;
  for (const json& line : lines) {
    EXPECT_EQ(line["split"], "test");
    EXPECT_EQ(line["exact_match"], line["translation"] == line["target"]);
    EXPECT_LT(line["log_probability"], 0);
    for (const json& probe : line["probes"]) {
      EXPECT_EQ(probe["contrastive_correct"], probe["margin"] > 0);
      EXPECT_NE(probe["contrast"], line["target"]);
      if (probe["phenomenon"] != "agreement") continue;
      ++probes;
      slots += probe["slot_correct"].get<bool>() ? 1 : 0;
      contrasts += probe["contrastive_correct"].get<bool>() ? 1 : 0;
      without_attractors += probe["attractors"] == 0 ? 1 : 0;
    }
  }
  const json& agreement = report["phenomena"]["agreement"];
  EXPECT_EQ(agreement["probes"], probes);
  EXPECT_EQ(agreement["slot_accuracy"]["score"], 100.0 * slots / probes);
  EXPECT_EQ(agreement["contrastive_accuracy"]["score"], 100.0 * contrasts / probes);
  EXPECT_EQ(agreement["by_attractors"]["0"]["probes"], without_attractors);
  EXPECT_GT(agreement["by_distance"].size(), 1u);
  for (const char* measure : {"exact_match", "slot_accuracy", "contrastive_accuracy", "chrf"})
    expect_estimate(agreement[measure]);
}

TEST(EvaluateGrammar, PrintsATable) {
  const Outcome outcome = run({"evaluate", grammar_run(), "--split", "depth-valid", "--limit", "20"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("bleu "), HasSubstr("\nsplit "), HasSubstr("contrastive"),
                                 ContainsRegex("\ndepth-valid +all +20 "),
                                 ContainsRegex("\ndepth-valid +agreement +[0-9]+ +[0-9]+ +[0-9.]+ \\[")));
  // Of a phenomenon's split its own row alone.
  const Outcome of_phenomenon = run({"evaluate", grammar_run(), "--split", "relatives", "--limit", "20"});
  EXPECT_THAT(of_phenomenon.out, ContainsRegex("\nrelatives +relatives +20 "));
  EXPECT_THAT(of_phenomenon.out, AllOf(Not(HasSubstr("agreement")), Not(HasSubstr(" all "))));
}

TEST(EvaluateGrammar, MeasuresAllSplits) {
  const std::string sentences = fresh_path("sentences");
  const Arguments command{"evaluate", grammar_run(), "--split", "all", "--limit", "5"};
  Arguments as_json = command, again = command;
  as_json.insert(as_json.end(), {"--json", "--threads", "1"});
  again.insert(again.end(), {"--json", "--threads", "2", "--sentences", sentences});
  const Outcome outcome = run(as_json);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(run(again).out, outcome.out);
  EXPECT_EQ(read_json_lines(sentences).size(), 17u * 5);
  const auto report = nlohmann::ordered_json::parse(outcome.out);
  std::vector<std::string> splits;
  for (const auto& [name, of_split] : report["splits"].items()) {
    splits.push_back(name);
    EXPECT_EQ(of_split["all"]["sentences"], 5) << name;
    EXPECT_TRUE(of_split.contains("bleu")) << name;
  }
  EXPECT_THAT(splits, ElementsAre("test", "names", "articles", "agreement", "verb_final", "inversion",
                                  "particles", "bracket", "attachment", "relatives", "pronouns", "negation",
                                  "senses", "length", "depth", "composition", "attractors"));
  EXPECT_EQ(report["splits"]["senses"]["phenomena"].size(), 1u);
  const Outcome table = run(command);
  EXPECT_THAT(table.out, AllOf(::testing::StartsWith("split "), ContainsRegex("\ntest +all +5 "),
                               ContainsRegex("\nsenses +senses +5 "), ContainsRegex("\nlength +all +5 ")));
}

TEST(EvaluateGrammar, SaysWhatItDoesNotHave) {
  const std::string text = write_text("text", "a b\n");
  const auto expect = [](const Arguments& arguments, int status, const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  expect({"evaluate", grammar_run(), "--split", "adjectives"}, 2,
         "--split: \"adjectives\", expected one of all, train, valid, test, names, articles, ");
  expect({"evaluate", grammar_run(), "--split", "all", "--output", fresh_path("out")}, 2,
         "--output: --split all has 17 splits, expected one; --sentences writes the translations of all");
  expect({"evaluate", grammar_run(), "--limit", "0"}, 2, "--limit");
  expect({"evaluate", trained_run(), "--split", "agreement"}, 2,
         "--split: \"agreement\", but data.task copy has train, valid, test only");
  expect({"evaluate", grammar_run(), "--source", text, "--target", text, "--sentences", text}, 2, "excludes");
}

TEST(EvaluateGrammar, LimitsOtherTasksToo) {
  const Outcome outcome =
      run({"evaluate", trained_run(), "--limit", "7", "--json", "--metrics", "exact_match"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.size(), 1u);
  EXPECT_EQ(report["exact_match"]["details"]["lines"], 7);
}

TEST(Evaluate, WritesTheSentencesOfAnyTask) {
  const std::string sentences = fresh_path("sentences");
  const Outcome outcome = run({"evaluate", trained_run(), "--limit", "7", "--json", "--metrics",
                               "exact_match,loss", "--sentences", sentences});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  const std::vector<json> lines = read_json_lines(sentences);
  ASSERT_EQ(lines.size(), 7u);
  double matches = 0;
  for (const json& line : lines) {
    EXPECT_EQ(line["source"], line["target"]);  // the task is to copy
    EXPECT_EQ(line["exact_match"], line["translation"] == line["target"]);
    EXPECT_TRUE(line["probes"].empty());
    matches += line["exact_match"].get<bool>() ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(report["exact_match"]["score"], 100 * matches / 7);
  expect_loss(lines, report["loss"]["score"]);
}

TEST(Evaluate, LeavesOutOfTheLossWhatTheModelHasNoPlacesFor) {
  const std::string pair = write_text("pair", "a b c\n\n");
  const std::string sentences = fresh_path("sentences");
  const Outcome outcome =
      run({"evaluate", trained_run(), "--set", "data.task=files", "--set", "data.test.source=" + pair,
           "--set", "data.test.target=" + pair, "--metrics", "exact_match", "--sentences", sentences});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<json> lines = read_json_lines(sentences);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_GT(lines[0]["tokens"], 1);
  EXPECT_TRUE(lines[1]["tokens"].is_null());
  EXPECT_TRUE(lines[1]["log_probability"].is_null());
}

}  // namespace
}  // namespace polyhead::testing
