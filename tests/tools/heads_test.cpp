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
  std::getline(lines, line);
  EXPECT_EQ(line, "");
  std::getline(lines, line);
  EXPECT_THAT(line, AllOf(StartsWith("kind"), HasSubstr("entropy"), HasSubstr("eff. rank")));
  for (const json& head : report["heads"]) {
    std::getline(lines, line);
    std::istringstream fields(line);
    std::string kind;
    int layer = -1, number = -1;
    double entropy = -1, relative_entropy = -1, confidence = -1;
    fields >> kind >> layer >> number >> entropy >> relative_entropy >> confidence;
    EXPECT_EQ(kind, head["kind"]);
    EXPECT_EQ(number, head["head"]);
    EXPECT_NEAR(entropy, head["diagnostics"]["entropy"], 5.1e-4);
    EXPECT_NEAR(confidence, head["diagnostics"]["confidence"], 5.1e-4);
  }
  EXPECT_THAT(table.out, HasSubstr("Jensen-Shannon"));
}

TEST(Heads, AreDiagnosed) {
  const Outcome outcome = run({"heads", trained_run(), "--json", "--threads", "2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  for (const json& head : report["heads"]) {
    const json& d = head["diagnostics"];
    EXPECT_GE(d["relative_entropy"], 0);
    EXPECT_LE(d["relative_entropy"], 1.0001);
    EXPECT_GT(d["confidence"], 0);
    double offsets = 0;
    for (const json& share : d["offsets"]) offsets += share.get<double>();
    EXPECT_NEAR(offsets, 1, 1e-9);
    EXPECT_EQ(d["positional"], d["offset_share"] >= 0.9);
    EXPECT_EQ(d["rare_word"].is_null(), head["kind"] == "decoder");
    for (const char* figure : {"output_norm", "relative_output_norm", "gradient_norm", "effective_rank",
                               "logit_deviation", "separator_mass"})
      EXPECT_GT(d[figure], 0) << figure;
    EXPECT_GE(d["saturation"], 0);
  }
  ASSERT_EQ(report["similarity"].size(), 3u);
  for (const json& site : report["similarity"]) {
    EXPECT_EQ(site["heads"], 2);
    EXPECT_EQ(site["jensen_shannon"][0][0], 0);
    EXPECT_EQ(site["jensen_shannon"][0][1], site["jensen_shannon"][1][0]);
    EXPECT_NEAR(site["cka"][1][1], 1, 1e-9);
    EXPECT_EQ(site["cosine"][0][0], 1);
  }
  EXPECT_EQ(report["rollout"]["encoder"].size(), 1u);
  EXPECT_GT(report["rollout"]["decoder"][0]["self"], 0.5);
  EXPECT_TRUE(report["warnings"].is_array());
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
  const Outcome outcome = run({"heads", barely_trained("numbers"), "--limit", "5", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(
      outcome.err,
      "polyhead: no comparison with gold annotations: the pairs have no gold alignment or dependencies\n");
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["pairs"], 5);
  EXPECT_TRUE(report["heads"][5]["relations"].empty());
  EXPECT_GT(report["heads"][5]["diagnostics"]["entropy"], 0);
}

TEST(Heads, ReadEverySplitOfTheToyLanguage) {
  const std::string folder = barely_trained("grammar");
  const auto report = [&](const std::string& split) {
    const Outcome outcome = run({"heads", folder, "--split", split, "--limit", "6", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  const json attractors = report("attractors");
  EXPECT_EQ(attractors["split"], "attractors");
  EXPECT_EQ(attractors["pairs"], 6);
  EXPECT_GT(attractors["heads"][0]["relations"]["head"]["tokens"], 0);
  EXPECT_NE(attractors["heads"], report("test")["heads"]);
}

TEST(Heads, AreDiagnosedDuringTraining) {
  const std::string folder = fresh_path("diagnosed"), plain = fresh_path("plain");
  const auto train = [](const std::string& out, const Arguments& more) {
    Arguments arguments{"train", tiny_config(), "--out",          out,     "--threads",
                        "2",     "--set",       "data.task=copy", "--set", "training.max_steps=4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<json> updates;
    for (json& entry : read_json_lines(out + "/train.jsonl"))
      if (entry.contains("loss")) updates.push_back(std::move(entry));
    return updates;
  };
  const std::vector<json> updates = train(folder, {"--set", "training.diagnostics_every=2"});
  ASSERT_EQ(updates.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(updates[i].contains("diagnostics"), i % 2 == 1);
  const json& heads = updates[3]["diagnostics"]["heads"];
  ASSERT_EQ(heads.size(), 6u);
  EXPECT_EQ(heads[5]["kind"], "cross");
  EXPECT_GT(heads[5]["gradient_norm"], 0);
  EXPECT_NE(heads, updates[1]["diagnostics"]["heads"]);
  EXPECT_TRUE(updates[3]["diagnostics"]["warnings"].is_array());
  // Looking does not change training.
  const std::vector<json> unwatched = train(plain, {});
  ASSERT_EQ(unwatched.size(), 4u);
  EXPECT_EQ(unwatched[3]["loss"], updates[3]["loss"]);
  EXPECT_FALSE(unwatched[1].contains("diagnostics"));
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
