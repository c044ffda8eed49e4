#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/program.h"

namespace polyhead::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A run of `task` that ended after one update.
std::string barely_trained(const std::string& task) {
  const std::string folder = fresh_path(task);
  const Outcome outcome = run({"train", tiny_config(), "--out", folder, "--threads", "1", "--set",
                               "data.task=" + task, "--set", "training.max_steps=1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return folder;
}

TEST(Heads, AreComparedWithTheGoldAlignment) {
  const Outcome outcome = run({"heads", trained_run(), "--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("split"), "test");
  EXPECT_EQ(report.at("pairs"), 30);
  EXPECT_THAT(report.at("checkpoint").get<std::string>(), StartsWith(trained_run()));
  ASSERT_EQ(report.at("heads").size(), 6u);  // two of each kind
  EXPECT_EQ(report["heads"][0]["kind"], "encoder");
  EXPECT_TRUE(report["heads"][0]["relations"].empty());  // copying has no dependencies
  const json& cross = report["heads"][5];
  EXPECT_EQ(cross["kind"], "cross");
  EXPECT_EQ(cross["layer"], 0);
  EXPECT_EQ(cross["head"], 1);
  const json& aligned = cross["relations"]["predicted_alignment"];
  EXPECT_GT(aligned["mass"], 0);
  EXPECT_LT(aligned["mass"], 1);
  EXPECT_EQ(aligned["baseline"]["mass"], 1);
  EXPECT_EQ(aligned["baseline"]["offset"], 0);
  EXPECT_GE(aligned["error_rate"], 0);
  EXPECT_LE(aligned["error_rate"], 1);
  EXPECT_EQ(aligned["baseline"]["error_rate"], (json{{"offset", 0}, {"error_rate", 0}}));
  // Neither threads nor a run's best checkpoint by its path change anything.
  EXPECT_EQ(run({"heads", report["checkpoint"], "--json", "--threads", "3"}).out, outcome.out);
}

TEST(Heads, ArePrintedAsATable) {
  const json report =
      json::parse(run({"heads", trained_run(), "--json", "--limit", "7", "--split", "valid"}).out);
  EXPECT_EQ(report["pairs"], 7);
  const Outcome table = run({"heads", trained_run(), "--limit", "7", "--split", "valid"});
  ASSERT_EQ(table.status, 0) << table.err;
  std::istringstream lines(table.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(line,
              AllOf(StartsWith("kind"), HasSubstr("predicted_alignment AER"), HasSubstr("input_alignment")));
  for (int head = 0; head < 2; ++head) {
    std::getline(lines, line);
    std::istringstream fields(line);
    std::string kind;
    int layer = -1, number = -1;
    double mass = -1, error_rate = -1;
    fields >> kind >> layer >> number >> mass >> error_rate;
    EXPECT_EQ(kind, "cross");
    EXPECT_EQ(layer, 0);
    EXPECT_EQ(number, head);
    const json& aligned =
        report["heads"][static_cast<std::size_t>(4 + head)]["relations"]["predicted_alignment"];
    EXPECT_NEAR(mass, aligned["mass"], 5.1e-5);
    EXPECT_NEAR(error_rate, aligned["error_rate"], 5.1e-5);
  }
  std::getline(lines, line);
  EXPECT_THAT(line, AllOf(StartsWith("best fixed offset"), HasSubstr("+0: 1.0000"), HasSubstr("+0: 0.0000")));
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

TEST(Heads, AreComparedWithTheGoldDependencies) {
  const Outcome outcome = run({"heads", barely_trained("recall"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  const json& labels = report["heads"][0]["relations"]["head"]["labels"];
  EXPECT_EQ(labels["previous"]["baseline"], (json{{"offset", -1}, {"share", 1.0}}));
  EXPECT_EQ(labels["induction"]["tokens"], 30);
  EXPECT_GE(labels["induction"]["share"], 0);
  EXPECT_LE(labels["induction"]["share"], 1);
}

TEST(Heads, SayWhenThereIsNoGold) {
  const Outcome outcome = run({"heads", barely_trained("numbers")});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(
      outcome.err,
      "polyhead: data.task: the pairs of \"numbers\" have no gold alignment or dependencies, expected a task "
      "that has them\n");
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(Heads, RefuseWrongUse) {
  const auto failure = [](const Arguments& arguments, int status, const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  failure({"heads"}, 2, "MODEL is required; see polyhead heads --help");
  failure({"heads", trained_run(), "--split", "dev"}, 2, "--split");
  failure({"heads", trained_run(), "--limit", "0"}, 2, "--limit");
  failure({"heads", trained_run(), "--threads", "0"}, 2, "--threads");
  failure({"heads", fresh_path("nowhere")}, 4, "nowhere");
}

}  // namespace
}  // namespace polyhead::testing
