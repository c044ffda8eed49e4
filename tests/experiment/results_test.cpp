#include "polyhead/experiment/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "experiment/experiments.h"
#include "polyhead/experiment/collect.h"

namespace polyhead::testing {
namespace {

using experiment::Cell;
using experiment::Outcome;
using experiment::Results;
using experiment::Row;
using experiment::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string two = "grid: {model.heads: [1, 4]}\nseeds: [5]\nevaluation: {metrics: [loss]}\n";

Outcome outcome(double loss) {
  Outcome result{.step = 12};
  result.measures = {{.split = "test", .metric = "loss", .value = loss},
                     {.split = "valid", .metric = "loss", .value = loss + 1}};
  return result;
}

/// An experiment of two cells, and a folder of their results.
struct TwoCells {
  Folder folder;
  experiment::Experiment definition = small_experiment(two);
  std::vector<Cell> cells = experiment::plan(definition).cells;
  experiment::EvaluationPlan evaluation = definition.config.evaluation;
  Results results{folder.path};

  std::vector<Row> rows() const { return results.rows(cells, "b", evaluation); }
  /// Of some cells, after all of these were finished and written.
  std::vector<Row> read_rows(const std::vector<Cell>& of, const std::string& base) {
    for (const Cell& cell : cells) results.put(cell.id, outcome(1));
    results.write(rows());
    return Results(folder.path).rows(of, base, evaluation);
  }
};

TEST(Results, AreReadAsTheyWereWritten) {
  TwoCells of;
  EXPECT_EQ(of.results.find(of.cells[0].id), nullptr);
  EXPECT_FALSE(of.results.is_complete(of.cells[0], of.evaluation));
  of.results.put(of.cells[1].id, outcome(2));
  of.results.put(of.cells[0].id, outcome(0.1));
  of.results.write(of.rows());
  const Results again(of.folder.path);
  EXPECT_TRUE(again.is_complete(of.cells[0], of.evaluation));
  const auto rows = again.rows(of.cells, "b", of.evaluation);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(experiment::to_jsonl(rows), experiment::to_jsonl(of.rows()));
  EXPECT_EQ(rows[0].measure->split, "valid");
  EXPECT_EQ(rows[1].measure->value, 0.1);
  EXPECT_EQ(rows[2].grid.front(), (std::pair<std::string, std::string>{"model.heads", "4"}));
  EXPECT_EQ(rows[2].base, "b");
  EXPECT_EQ(again.find(of.cells[1].id)->step, 12);
}

TEST(Results, KeepRowsOfCellsThatAreNotInTheExperiment) {
  TwoCells of;
  const std::vector<Cell> last{of.cells[1]};
  const auto rows = of.read_rows(last, "c");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].cell, of.cells[1].id);
  EXPECT_EQ(rows[0].base, "c");
  EXPECT_EQ(rows[3].cell, of.cells[0].id);
  EXPECT_EQ(rows[3].base, "b");
  const Results again(of.folder.path);
  EXPECT_THAT(again.others(last, "b").of_this_base, ElementsAre(of.cells[0].id));
  EXPECT_THAT(again.others(last, "c").of_another_base, ElementsAre(of.cells[0].id));
}

TEST(Results, HaveACellOnceWhateverTheGridSaysOfIt) {
  TwoCells of;
  const auto wider = experiment::plan(small_experiment(
      "grid: {model.heads: [1, 4], model.d_ff: [128]}\nseeds: [5]\nevaluation: {metrics: [loss]}\n"));
  ASSERT_EQ(wider.cells[0].id, of.cells[0].id);
  const auto rows = of.read_rows(wider.cells, "c");
  ASSERT_EQ(rows.size(), 4U);
  for (const Row& row : rows) EXPECT_EQ(row.grid.size(), 2U);
  // A cell that is now a trial alone, which needs less, keeps what else is known of it.
  Cell trial = of.cells[0];
  trial.trial = 2;
  EXPECT_EQ(of.read_rows({trial}, "b").size(), 1U + 4U);
}

TEST(Results, KnowWhatIsLeftToDo) {
  TwoCells of;
  const Cell& cell = of.cells[0];
  experiment::EvaluationPlan& evaluation = of.evaluation;
  Results& results = of.results;
  results.put(cell.id, outcome(1));
  EXPECT_TRUE(results.is_complete(cell, evaluation));
  evaluation.splits = {"test", "train"};
  EXPECT_THAT(results.missing_splits(cell, evaluation), ElementsAre("train"));
  evaluation.limit = 7;
  EXPECT_THAT(results.missing_splits(cell, evaluation), ElementsAre("test", "train"));
  Cell trial = cell;
  trial.trial = 1;
  EXPECT_TRUE(results.is_complete(trial, evaluation));
  results.put(cell.id, {.status = Status::failed});
  EXPECT_EQ(results.find(cell.id)->status, Status::finished) << "what is known stays true";
  results.put("x", {.status = Status::failed});
  results.put("x", {.status = Status::diverged, .message = "loss"});
  EXPECT_EQ(results.find("x")->status, Status::diverged);
  trial.id = "x";
  EXPECT_TRUE(results.is_complete(trial, evaluation));
}

TEST(Results, ScoreTrialsSoThatLargerIsBetter) {
  const Folder folder;
  Results results(folder.path);
  results.put("a", outcome(3));
  results.put("b", {.status = Status::diverged});
  results.put("c", {.status = Status::failed});
  const auto scores = results.trial_scores();
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores.at("a"), -4);
  EXPECT_EQ(scores.at("b"), -std::numeric_limits<double>::infinity());
}

TEST(Results, SayWhichLineCannotBeRead) {
  const Folder folder;
  folder.write("results.jsonl", "{}\n");
  EXPECT_THAT(error_of([&] { Results(folder.path); }), HasSubstr("results.jsonl:1: not a row of results"));
}

TEST(Results, AreCommaSeparatedToo) {
  Row row{.cell = "c", .control = "none", .seed = 3};
  row.grid = {{"model.heads", "{\"encoder\":[1,2]}"}};
  row.outcome.status = Status::failed;
  row.outcome.message = "no \"room\", none";
  const std::string csv = experiment::to_csv({row});
  EXPECT_THAT(csv, HasSubstr("model.heads,cell,base,control,trial,seed,split,metric,"));
  EXPECT_THAT(
      csv, HasSubstr("\"{\"\"encoder\"\":[1,2]}\",c,,none,,3,,,,,,,,,failed,\"no \"\"room\"\", none\",0,"));
}

TEST(Collect, ReadsTheLogOfARun) {
  const Folder folder;
  folder.write("train.jsonl",
               "{\"step\":1,\"target_tokens\":100,\"target_tokens_per_second\":50,\"seconds\":2.5}\n"
               "{\"step\":1,\"validation\":{\"loss\":3.0}}\n"
               "{\"step\":2,\"target_tokens\":100,\"target_tokens_per_second\":100,\"seconds\":3.5}\n"
               "{\"step\":2,\"validation\":{\"loss\":2.0}}\n{\"step\":2,\"validation\":{\"loss\":2.5}}\n");
  const Outcome result = experiment::training_outcome(folder.path, {});
  EXPECT_EQ(result.step, 2);
  EXPECT_DOUBLE_EQ(result.tokens_per_second, 200. / 3);
  EXPECT_EQ(result.train_seconds, 3.5);
  ASSERT_EQ(result.measures.size(), 1U);
  EXPECT_EQ(result.measures[0].split, "valid");
  EXPECT_EQ(result.measures[0].value, 2.0);
}

TEST(Collect, ReadsAnEvaluation) {
  const experiment::EvaluationPlan evaluation{.metrics = {"loss", "slot_accuracy"}, .limit = 9};
  const auto measures = experiment::measures_of(
      R"({"loss": {"score": 0.5}, "all": {"sentences": 9, "probes": 20, "slot_accuracy": {"score": 80, "low": 60, "high": 90}},
          "phenomena": {"negation": {"sentences": 3, "probes": 4, "slot_accuracy": {"score": 75, "low": 30, "high": 95}}}})",
      "f", "length", evaluation);
  ASSERT_EQ(measures.size(), 3U);
  EXPECT_EQ(measures[0].value, 0.5);
  EXPECT_EQ(measures[0].limit, 9);
  EXPECT_EQ(measures[1].n, 20);
  EXPECT_EQ(measures[1].low, 60);
  EXPECT_EQ(measures[2].phenomenon, "negation");
  EXPECT_EQ(measures[2].split, "length");
  EXPECT_THAT(error_of([&] { experiment::measures_of("{", "f.json", "test", evaluation); }),
              HasSubstr("f.json: not what polyhead evaluate --json writes"));
}

}  // namespace
}  // namespace polyhead::testing
