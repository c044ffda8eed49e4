#include "polyhead/experiment/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/experiments.h"

namespace polyhead::testing {
namespace {

using experiment::Plan;
using experiment::Results;
using ::testing::HasSubstr;

/// An experiment on files of a folder: `more` of its base.
experiment::Experiment file_experiment(const Folder& folder, const std::string& rest = "") {
  const auto pair = [&](const std::string& name) {
    return "{source: " + folder.path + "/" + name + ".en, target: " + folder.path + "/" + name + ".de}";
  };
  return small_experiment(
      "seeds: [5, 6]\nevaluation: {splits: [test], metrics: [loss]}\n" + rest,
      {"data={train: " + pair("train") + ", valid: " + pair("valid") + ", test: " + pair("test") + "}"});
}

void write_all(const Folder& folder) {
  for (const char* name : {"train", "valid", "test"})
    for (const char* side : {".en", ".de"}) folder.write(std::string(name) + side, "a b\nc\n");
}

std::string check(const Folder& folder, const experiment::Experiment& experiment) {
  return error_of([&] {
    experiment::check_files(experiment::plan(experiment), Results(folder.path), experiment.config.evaluation);
  });
}

TEST(Files, AreAllReadBeforeAnythingRuns) {
  const Folder folder;
  const experiment::Experiment experiment = file_experiment(folder);
  write_all(folder);
  EXPECT_EQ(check(folder, experiment), "");
  std::filesystem::remove(folder.path + "/test.en");
  folder.write("train.de", "a\n");
  folder.write("valid.en", "");
  folder.write("valid.de", "");
  EXPECT_EQ(check(folder, experiment), folder.path + "/train.en has 2 lines, but " + folder.path +
                                           "/train.de has 1\ndata file " + folder.path +
                                           "/valid.en: no lines, expected a sentence a line\ndata file " +
                                           folder.path + "/test.en: No such file or directory");
}

TEST(Files, AreNotAskedForWhereNothingIsLeftToDo) {
  const Folder folder;
  const experiment::Experiment experiment = file_experiment(folder);
  const Plan plan = experiment::plan(experiment);
  Results results(folder.path);
  for (const experiment::Cell& cell : plan.cells)
    results.put(cell.id, {.measures = {{.split = "test", .metric = "loss", .value = 1}}});
  EXPECT_EQ(error_of([&] { experiment::check_files(plan, results, experiment.config.evaluation); }), "");
  experiment::EvaluationPlan evaluation = experiment.config.evaluation;
  evaluation.splits = {"train"};
  const std::string message = error_of([&] { experiment::check_files(plan, results, evaluation); });
  EXPECT_THAT(message, HasSubstr("train.en: No such file or directory\n"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("test.en")));
}

TEST(Files, OfOtherContentAreOtherCellsOfAnotherBase) {
  const Folder folder;
  write_all(folder);
  experiment::Experiment experiment = file_experiment(folder);
  const auto ids = [&](const experiment::Digests& known = {}) {
    experiment.config.digests = experiment::digests_of(experiment::plan(experiment), known);
    return std::pair(experiment::plan(experiment).cells.front().id, experiment::base_id(experiment));
  };
  const auto before = ids();
  const experiment::Digests recorded = experiment.config.digests;
  EXPECT_EQ(recorded.of.size(), 6U);
  EXPECT_EQ(recorded.of.at(folder.path + "/test.de"), "982db97aa6a1f2e1");
  write_all(folder);  // the same again, later
  EXPECT_EQ(ids(), before);
  for (const char* file : {"train.en", "valid.de", "test.de"}) {
    folder.write(file, "a b\nd\n");
    const auto after = ids();
    EXPECT_NE(after.first, before.first) << file;
    EXPECT_NE(after.second, before.second) << file;
    write_all(folder);
  }
  // What is gone is taken to be as it was.
  std::filesystem::remove(folder.path + "/train.en");
  EXPECT_EQ(ids(recorded), before);
  EXPECT_NE(ids(), before);
  experiment.config.digests = recorded;
  const Folder other;
  EXPECT_EQ(experiment::load_experiment(other.write("e.yaml", experiment::dump(experiment)), {}, "")
                .config.digests.of,
            recorded.of);
}

}  // namespace
}  // namespace polyhead::testing
