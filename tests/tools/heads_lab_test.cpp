#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/program.h"

namespace polyhead::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

json run_json(Arguments arguments) {
  arguments.insert(arguments.end(), {"--json", "--threads", "1"});
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome.status == 0 ? json::parse(outcome.out) : json();
}

TEST(HeadsMask, TellsWhatBecomesOfEveryFigureWithoutEachHead) {
  const json report =
      run_json({"heads", "mask", trained_run(), "--limit", "12", "--draws", "200", "--beam", "1"});
  EXPECT_EQ(report["method"], "zero");
  EXPECT_EQ(report["sentences"], 12);
  ASSERT_EQ(report["sets"].size(), 6u);
  EXPECT_EQ(report["sets"][0]["name"], "encoder.0.0");
  EXPECT_THAT(report["sets"][5]["heads"], ElementsAre("cross.0.1"));
  for (const json& set : report["sets"])
    for (const auto& [name, figure] : set["figures"].items()) {
      EXPECT_NEAR(figure["score"].get<double>() - report["baseline"][name].get<double>(), figure["change"],
                  1e-9);
      EXPECT_GE(figure["q"], figure["p"]);
      EXPECT_GT(figure["p"], 0);
      EXPECT_LE(figure["q"], 1);
    }
  std::set<std::string> figures;
  for (const auto& [name, score] : report["baseline"].items()) figures.insert(name);
  EXPECT_EQ(figures, (std::set<std::string>{"loss", "bleu", "chrf", "exact_match"}));
}

TEST(HeadsMask, TakesSetsFromTheCommandLineAndFromFiles) {
  const std::string file = write_text("sets.yaml", "sets:\n  - encoder.0.0, cross.0.1\n");
  const Arguments mask{"heads", "mask", trained_run(), "--limit", "4", "--draws", "10", "--beam", "1"};
  const auto with = [&](const Arguments& more) {
    Arguments all = mask;
    all.insert(all.end(), more.begin(), more.end());
    return run_json(all);
  };
  const json both = with({"--heads", "encoder.0.0,cross.0.1", "--heads", "decoder.0.0", "--sets", file});
  ASSERT_EQ(both["sets"].size(), 3u);
  EXPECT_EQ(both["sets"][0]["name"], "encoder.0.0,cross.0.1");
  EXPECT_EQ(both["sets"][0], both["sets"][2]);
  for (const char* method : {"mean", "resample", "uniform"}) {
    const json other = with({"--heads", "encoder.0.0,cross.0.1", "--method", method});
    EXPECT_EQ(other["baseline"], both["baseline"]);
    EXPECT_NE(other["sets"][0]["figures"]["loss"]["score"], both["sets"][0]["figures"]["loss"]["score"])
        << method;
  }
  const json alone = with({"--all-but-one"});
  ASSERT_EQ(alone["sets"].size(), 6u);
  EXPECT_EQ(alone["sets"][1]["name"], "all but encoder.0.1");
  EXPECT_THAT(alone["sets"][1]["heads"], ElementsAre("encoder.0.0"));
}

TEST(HeadsMask, TellsPhenomenaOfTheToyLanguageApart) {
  const json report = run_json({"heads", "mask", grammar_run(), "--limit", "15", "--draws", "20", "--beam",
                                "1", "--heads", "cross.0.0"});
  ASSERT_FALSE(report["sets"][0]["phenomena"].empty());
  for (const auto& [phenomenon, figures] : report["sets"][0]["phenomena"].items())
    for (const char* figure : {"exact_match", "slot_accuracy", "contrastive_accuracy"})
      EXPECT_NEAR(figures[figure]["score"].get<double>() - figures[figure]["change"].get<double>(),
                  report["baseline_phenomena"][phenomenon][figure], 1e-9);
  EXPECT_TRUE(report["baseline"].contains("slot_accuracy"));
}

TEST(HeadsMask, IsPrintedAsATable) {
  const Outcome outcome =
      run({"heads", "mask", trained_run(), "--limit", "4", "--draws", "10", "--beam", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("masked"));
  EXPECT_THAT(outcome.out, HasSubstr("\nnothing "));
  EXPECT_THAT(outcome.out, HasSubstr("\ncross.0.1 "));
}

TEST(HeadsImportance, GivesEveryFigureAndTheirCorrelations) {
  const json report = run_json({"heads", "importance", trained_run(), "--limit", "10"});
  ASSERT_EQ(report["heads"].size(), 6u);
  EXPECT_EQ(report["heads"][3]["kind"], "decoder");
  EXPECT_EQ(report["heads"][3]["head"], 1);
  for (const json& head : report["heads"]) {
    EXPECT_GT(head["importance"], 0);
    EXPECT_LE(head["importance_normalized"], 1);
    EXPECT_GT(head["confidence"], 0);
    EXPECT_LE(head["confidence"], 1);
    EXPECT_GT(head["output_norm"], 0);
  }
  ASSERT_EQ(report["rank_correlations"].size(), 10u);
  EXPECT_EQ(report["rank_correlations"][0]["a"], "importance");
  EXPECT_LE(std::abs(report["rank_correlations"][1]["rho"].get<double>()), 1);
  const Outcome table = run({"heads", "importance", trained_run(), "--limit", "10"});
  EXPECT_THAT(table.out, HasSubstr("Spearman"));
}

TEST(HeadsCurve, RemovesHeadsOneByOne) {
  const json report = run_json({"heads", "curve", trained_run(), "--limit", "6", "--orders",
                                "importance,random,greedy", "--scopes", "cross,all", "--draws", "2"});
  ASSERT_EQ(report["curves"].size(), 8u);
  const json& cross = report["curves"][0];
  EXPECT_EQ(cross["scope"], "cross");
  EXPECT_EQ(cross["order"], "importance");
  EXPECT_TRUE(cross["draw"].is_null());
  ASSERT_EQ(cross["points"].size(), 3u);
  EXPECT_TRUE(cross["points"][0]["head"].is_null());
  EXPECT_THAT(cross["points"][1]["head"].get<std::string>(), StartsWith("cross.0."));
  EXPECT_EQ(report["curves"][1]["draw"], 0);
  // Whatever the order, it begins with the whole model and ends with nothing of the scope.
  for (const json& curve : report["curves"]) {
    const json& like = curve["scope"] == "cross" ? cross : report["curves"][4];
    EXPECT_EQ(curve["points"].front()["loss"], like["points"].front()["loss"]);
    EXPECT_NEAR(curve["points"].back()["loss"], like["points"].back()["loss"], 1e-6);
  }
  EXPECT_EQ(report["curves"][4]["points"].size(), 7u);
  const Outcome table = run({"heads", "curve", trained_run(), "--limit", "2", "--orders", "confidence",
                             "--scopes", "cross", "--metrics", "loss,exact_match", "--beam", "1"});
  EXPECT_THAT(table.out, StartsWith("cross, order confidence\nremoved"));
  EXPECT_THAT(table.out, HasSubstr("exact_match"));
}

TEST(HeadsPrune, WritesACheckpointThatIsUsedAsAnyOther) {
  const std::string out = fresh_path("pruned.h5"), config = fresh_path("pruned.yaml");
  const std::string removed = "encoder.0.1,decoder.0.0,decoder.0.1,cross.0.0";
  const json report =
      run_json({"heads", "prune", trained_run(), "--heads", removed, "--out", out, "--config", config});
  EXPECT_EQ(report["heads"], (json{{"encoder", {1}}, {"decoder", {0}}, {"cross", {1}}}));
  EXPECT_LT(report["parameters"]["after"], report["parameters"]["before"]);
  EXPECT_EQ(report["bytes"]["after"], std::filesystem::file_size(out));
  EXPECT_LT(report["bytes"]["after"], report["bytes"]["before"]);
  const json masked = run_json({"heads", "mask", trained_run(), "--heads", removed, "--draws", "1"});
  const json pruned = run_json({"evaluate", out, "--metrics", "loss,bleu"});
  EXPECT_NEAR(pruned["loss"]["score"], masked["sets"][0]["figures"]["loss"]["score"], 1e-5);
  EXPECT_NEAR(pruned["bleu"]["score"], masked["sets"][0]["figures"]["bleu"]["score"], 1e-9);
  EXPECT_EQ(run_json({"heads", out})["heads"].size(), 2u);
  // A configuration that is there is as good as written anew.
  const std::string again = fresh_path("pruned.h5");
  EXPECT_EQ(
      run({"heads", "prune", trained_run(), "--heads", removed, "--out", again, "--config", config}).status,
      0);
  EXPECT_EQ(read_text(again), read_text(out));
  EXPECT_THAT(run({"inspect", out}).out, HasSubstr("{encoder: [1], decoder: [0], cross: [1]}"));
  // It can be trained on, and the same shape from scratch.
  const auto loss_after_training = [&](const Arguments& more) {
    const std::string folder = fresh_path("from-pruned");
    Arguments all{"train", config, "--threads", "1", "--out", folder};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = run(all);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return run_json({"evaluate", folder, "--metrics", "loss"})["loss"]["score"].get<double>();
  };
  const std::string from = "training.initial_checkpoint=" + out;
  EXPECT_EQ(loss_after_training({"--set", from, "--set", "training.max_steps=0"}), pruned["loss"]["score"]);
  EXPECT_LT(loss_after_training({"--set", from}), pruned["loss"]["score"]);
  EXPECT_GT(loss_after_training({"--set", "training.max_steps=1"}), 1);
}

TEST(HeadsPrune, RemovesTheHeadsWhoseLearnedGatesHaveClosed) {
  const std::string folder = fresh_path("gated"), out = fresh_path("open.h5");
  const Outcome outcome =
      run({"train", tiny_config(), "--out", folder, "--threads", "1", "--set",
           "training.initial_checkpoint=" + trained_run(), "--set",
           "training.head_gates={lambda: 50, initial: -1}", "--set", "training.learning_rate=0.2", "--set",
           "training.schedule=constant", "--set", "training.warmup_steps=0"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(read_text(folder + "/train.jsonl"), HasSubstr("\"open_heads\":"));
  const json report = run_json({"heads", "prune", folder, "--closed", "--out", out});
  EXPECT_GE(report["removed"].size(), 1u);
  EXPECT_NEAR(run_json({"evaluate", out, "--metrics", "loss"})["loss"]["score"].get<double>(),
              run_json({"evaluate", folder, "--metrics", "loss"})["loss"]["score"], 1e-5);
}

TEST(HeadsLab, RefusesWrongUse) {
  const auto failure = [](const Arguments& arguments, int status, const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  const std::string& model = trained_run();
  failure({"heads", "mask"}, 2, "MODEL is required");
  failure({"heads", "mask", fresh_path("nowhere")}, 4, "nowhere");
  failure({"heads", "mask", model, "--heads", "encoder.0.2"}, 2,
          "head \"encoder.0.2\": the layer has 2 heads, counted from 0");
  failure({"heads", "mask", model, "--method", "ones"}, 2, "--method");
  failure({"heads", "mask", model, "--heads", "cross.0.0", "--all-but-one"}, 2, "--all-but-one");
  failure({"heads", "mask", model, "--sets", fresh_path("none.yaml")}, 2, "no such file");
  const std::string wrong = write_text("wrong.yaml", "sets: [cross.0.0, cross.9.0]\n");
  failure({"heads", "mask", model, "--sets", wrong}, 2,
          wrong + ": sets[1]: head \"cross.9.0\": the model has 1 layers");
  failure({"heads", "mask", model, "--split", "length"}, 2,
          "--split: \"length\", but data.task copy has train, valid, test only");
  failure({"heads", "mask", grammar_run(), "--split", "all"}, 2,
          "--split: all is several splits, expected one");
  failure({"heads", "mask", model, "--method", "resample", "--limit", "1"}, 3,
          "resample from another sentence of 1");
  failure({"heads", "mask", model, "--set", "model.heads=4"}, 2, "a trained model keeps this setting");
  failure({"heads", "curve", model, "--orders", "size"}, 2, "--orders");
  failure({"heads", "prune", model, "--heads", "cross.0.0"}, 2, "--out is required");
  failure({"heads", "prune", model, "--out", fresh_path("x.h5")}, 2, "no heads given");
  failure({"heads", "prune", model, "--closed", "--out", fresh_path("x.h5")}, 2,
          "has no learned gates of heads");
  failure({"heads", "prune", model, "--heads", "cross", "--out", fresh_path("x.h5")}, 2,
          "head \"cross\", expected");
  failure({"heads", "prune", model, "--heads", "cross.0.0", "--out", "/nonexistent/x.h5"}, 4,
          "/nonexistent/x.h5");
  const std::string there = write_text("there", "as it was");
  failure({"heads", "prune", model, "--heads", "cross.0.0", "--out", there}, 4,
          there + ": exists already; give another --out");
  failure(
      {"heads", "prune", model, "--heads", "cross.0.0", "--out", fresh_path("x.h5"), "--config", there}, 4,
      there +
          ": exists already, and is not the configuration without these heads; remove it or give another");
  EXPECT_EQ(read_text(there), "as it was");
  const std::string same = fresh_path("x.h5");
  failure({"heads", "prune", model, "--heads", "cross.0.0", "--out", same, "--config", same}, 2,
          "--config and --out are both " + same);
}

}  // namespace
}  // namespace polyhead::testing
