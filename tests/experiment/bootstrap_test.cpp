#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "experiment/experiments.h"
#include "polyhead/experiment/sentences.h"
#include "polyhead/experiment/summary.h"
#include "polyhead/metrics/significance.h"

namespace polyhead::testing {
namespace {

using experiment::Cell;
using experiment::Figure;
using experiment::Group;
using experiment::Sentences;
using metrics::SentencesOf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int sentences = 20;

std::string line(const std::string& source, bool right) {
  return nlohmann::json{{"source", source}, {"target", "a b"},         {"translation", right ? "a b" : "a"},
                        {"tokens", 3},      {"log_probability", -1.5}, {"probes", nlohmann::json::array()}}
             .dump() +
         '\n';
}

/// An experiment of two points with three seeds, each of which gets some sentences right.
struct Experiment {
  Folder folder;
  experiment::Experiment definition = small_experiment(
      "grid: {model.heads: [1, 4]}\nseeds: [5, 6, 7]\nbaseline: {model.heads: 4}\n"
      "evaluation: {splits: [test, train], metrics: [exact_match]}\n");
  experiment::Plan plan = experiment::plan(definition);
  experiment::Results results{folder.path};
  std::vector<metrics::SentenceStatistics> few, many;  ///< of the points, by seeds

  explicit Experiment(SentencesOf of) {
    for (std::size_t c = 0; c < plan.cells.size(); ++c) {
      const Cell& cell = plan.cells[c];
      std::string text;
      std::vector<double> right;
      for (int i = 0; i < sentences; ++i) {
        right.push_back((i * (7 + 4 * static_cast<int>(c))) % sentences < 4 + 2 * static_cast<int>(c) ? 1
                                                                                                      : 0);
        text += line(concat(i, of == SentencesOf::each_seed ? cell.seed : 0), right.back() > 0);
      }
      std::filesystem::create_directories(folder.path + "/cells/" + cell.id);
      folder.write(file_of(cell), text);
      (c < 3 ? few : many).push_back(metrics::mean_statistics(right, 100));
      const double value = (c < 3 ? few : many).back().score();
      results.put(cell.id, {.measures = {{.split = "test", .metric = "exact_match", .value = value},
                                         {.split = "train", .metric = "exact_match", .value = 50}}});
    }
  }
  static std::string file_of(const Cell& cell) { return "cells/" + cell.id + "/sentences-test.jsonl"; }

  std::vector<Group> groups() const { return experiment::summarize(definition, plan, results); }
  std::string add(std::vector<Group>& groups, int threads = 1) const {
    return add_bootstrap(groups, definition, plan, results, folder.path, threads);
  }
};

/// The scores of systems in the draws that they share.
std::vector<metrics::DrawnScores> scores_of(
    const std::vector<const std::vector<metrics::SentenceStatistics>*>& systems, SentencesOf of) {
  std::vector<std::vector<const metrics::SentenceStatistics*>> pointers;
  for (const auto* system : systems) {
    pointers.emplace_back();
    for (const metrics::SentenceStatistics& seed : *system) pointers.back().push_back(&seed);
  }
  return metrics::hierarchical_bootstrap(pointers, of);
}

void expect_near(const std::optional<metrics::Estimate>& a, const metrics::Estimate& b) {
  ASSERT_TRUE(a);
  EXPECT_NEAR(a->score, b.score, 1e-9);
  EXPECT_NEAR(a->low, b.low, 1e-9);
  EXPECT_NEAR(a->high, b.high, 1e-9);
}

TEST(Bootstrap, IsOverSeedsAndWhatTheyMadeOfSentences) {
  for (const SentencesOf of : {SentencesOf::each_seed, SentencesOf::all_seeds}) {
    const Experiment e(of);
    std::vector<Group> groups = e.groups();
    EXPECT_EQ(e.add(groups, 2), "");
    ASSERT_EQ(groups.size(), 2U);
    const Figure &few = groups[0].figures[0], &many = groups[1].figures[0];
    const metrics::DrawnScores of_few = scores_of({&e.few}, of).front(),
                               of_many = scores_of({&e.many}, of).front();
    expect_near(few.bootstrap, of_few.mean());
    expect_near(many.bootstrap, of_many.mean());
    expect_near(few.difference_bootstrap, (of_few - of_many).mean());
    EXPECT_FALSE(many.difference_bootstrap);  // it is the baseline
    EXPECT_EQ(groups[0].figures[1].split, "train");
    EXPECT_FALSE(groups[0].figures[1].bootstrap) << "headlines alone";
    EXPECT_THAT(experiment::summary_text(e.definition, groups, ""),
                AllOf(HasSubstr("bootstrap  seeds"), HasSubstr("of 10000 draws; of the first split")));
  }
}

TEST(Bootstrap, SaysWhatIsMissing) {
  const Experiment e(SentencesOf::each_seed);
  const std::string path = e.folder.path + '/' + e.file_of(e.plan.cells[4]);
  std::filesystem::remove(path);
  std::vector<Group> groups = e.groups();
  const std::string note = e.add(groups);
  // The point's own interval, and the other's difference to it.
  EXPECT_EQ(note, "2 figures without a bootstrap interval: " + path + ": cannot be read");
  EXPECT_TRUE(groups[0].figures[0].bootstrap);
  EXPECT_FALSE(groups[0].figures[0].difference_bootstrap);
  EXPECT_TRUE(groups[0].figures[0].difference);
  EXPECT_FALSE(groups[1].figures[0].bootstrap);
  EXPECT_THAT(experiment::summary_text(e.definition, groups, note), HasSubstr('\n' + note + '\n'));
  for (const Cell& cell : e.plan.cells) std::filesystem::remove(e.folder.path + '/' + e.file_of(cell));
  groups = e.groups();
  EXPECT_THAT(e.add(groups), HasSubstr("2 figures without a bootstrap interval: "));
  EXPECT_THAT(experiment::summary_text(e.definition, groups, ""), Not(HasSubstr("bootstrap")));
}

TEST(Bootstrap, StopsWhenItIsAskedTo) {
  const Experiment e(SentencesOf::each_seed);
  for (const int when : {1, 2, 3}) {  // before the files of a point, of the other, and before the draws
    std::vector<Group> groups = e.groups();
    int asked = 0;
    EXPECT_EQ(add_bootstrap(groups, e.definition, e.plan, e.results, e.folder.path, 1,
                            [&] { return ++asked == when; }),
              "stopped before all bootstrap intervals were made; the same command makes them");
    EXPECT_EQ(asked, when);
    EXPECT_FALSE(groups[0].figures[0].bootstrap);
  }
}

TEST(Bootstrap, TakesNoSentencesOfOtherFigures) {
  const Experiment e(SentencesOf::each_seed);
  e.folder.write(e.file_of(e.plan.cells[0]), line("x", true) + line("y", false));
  std::vector<Group> groups = e.groups();
  EXPECT_THAT(e.add(groups), HasSubstr("gives exact_match 50, but results.jsonl has 20"));
  std::string text;
  for (int i = 0; i < sentences; ++i) text += line("other", i < 4);
  e.folder.write(e.file_of(e.plan.cells[0]), text);
  groups = e.groups();
  EXPECT_THAT(e.add(groups), HasSubstr("of seed 5, the sentences of test are not the baseline's"));
}

TEST(Sentences, AreWhatEveryMetricIsMadeOf) {
  const Folder folder;
  const Sentences read(folder.write(
      "s.jsonl",
      R"({"source":"x","target":"a b c","translation":"a b c","tokens":4,"log_probability":-2.0,"probes":[{"slot_correct":true,"contrastive_correct":false},{"slot_correct":true,"contrastive_correct":true}]})"
      "\n"
      R"({"source":"y","target":"a d","translation":"a","tokens":1,"log_probability":-8.0,"probes":[]})"
      "\n"
      R"({"source":"z","target":"e","translation":"e","tokens":null,"log_probability":null,"probes":[{"slot_correct":false,"contrastive_correct":true}]})"
      "\n"));
  const auto score = [&](const char* metric) { return read.statistics(metric, {}).score(); };
  EXPECT_DOUBLE_EQ(score("exact_match"), 200. / 3);
  EXPECT_DOUBLE_EQ(score("slot_accuracy"), 200. / 3);
  EXPECT_DOUBLE_EQ(score("contrastive_accuracy"), 200. / 3);
  EXPECT_DOUBLE_EQ(score("loss"), 2);
  EXPECT_DOUBLE_EQ(score("perplexity"), std::exp(2));
  EXPECT_EQ(read.statistics("slot_accuracy", {}).sentences(), 2U);
  EXPECT_THAT(error_of([&] { score("token_accuracy"); }),
              HasSubstr("s.jsonl: has no most probable tokens, which token_accuracy takes"));
  const Sentences without(
      folder.write("w.jsonl", R"({"source":"x","target":"a","translation":"a","probes":[]})"));
  EXPECT_NE(without.digest(), read.digest());
  EXPECT_THAT(error_of([&] { without.statistics("loss", {}); }),
              HasSubstr("w.jsonl: has no numbers of tokens, which loss takes"));
  EXPECT_THAT(error_of([&] { without.statistics("slot_accuracy", {}); }), HasSubstr("has no probes"));
  const std::string bad = folder.write("b.jsonl", line("x", true) + "{\"source\"\n");
  EXPECT_THAT(error_of([&] { Sentences{bad}; }), HasSubstr("b.jsonl:2: not a sentence as polyhead evaluate"));
  EXPECT_THAT(error_of([&] { Sentences{folder.write("e.jsonl", "")}; }),
              HasSubstr("e.jsonl: has no sentences"));
}

}  // namespace
}  // namespace polyhead::testing
