#include "polyhead/experiment/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "experiment/experiments.h"
#include "polyhead/config/yaml.h"
#include "polyhead/data/batches.h"
#include "polyhead/experiment/workload.h"
#include "polyhead/train/training_data.h"

namespace polyhead::testing {
namespace {

using experiment::Cell;
using experiment::Control;
using experiment::Plan;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string heads_grid = "grid: {model.heads: [1, 4, 8]}\nbaseline: {model.heads: 4}\nseeds: [5]\n";

std::int64_t parameters(const Cell& cell) {
  static experiment::Workloads workloads;
  return workloads.of(cell.config).costs(cell.config.model).parameters;
}

TEST(ExperimentConfig, ReadsWhatItDumps) {
  const auto first = small_experiment(heads_grid + "controls: [partition, fixed_head_dim]\nname: heads\n");
  const Folder folder;
  const std::string text = experiment::dump(first);
  const auto again = experiment::load_experiment(folder.write("e.yaml", text), {}, "");
  EXPECT_EQ(experiment::dump(again), text);
  EXPECT_EQ(again.config.name, "heads");
  ASSERT_EQ(again.config.grid.axes.size(), 1U);
  EXPECT_EQ(again.config.grid.axes[0].values.size(), 3U);
  EXPECT_EQ(experiment::base_id(again), experiment::base_id(first));
  EXPECT_EQ(experiment::plan(again).cells.size(), 6U);
}

TEST(ExperimentConfig, TakesItsBaseFromAFileBesideItOrTheDefault) {
  const Folder folder;
  folder.write("base.yaml", "model: {d_ff: 77}\ntraining: {max_steps: 1}\ndata: {task: sort}\n");
  const std::string file = folder.write("e.yaml", "base: base.yaml\n");
  const std::vector<std::string> overrides{"model.d_model=64", "training.max_steps=3"};
  const Plan plan = experiment::plan(experiment::load_experiment(file, overrides, ""));
  ASSERT_EQ(plan.cells.size(), 5U);  // five seeds, where none are given
  EXPECT_EQ(plan.cells[0].config.model.d_ff, 77);
  EXPECT_EQ(plan.cells[0].config.model.d_model, 64);
  EXPECT_EQ(plan.cells[0].config.training.max_steps, 3);
  EXPECT_EQ(plan.cells[4].config.seed, 5U);
  const std::string by_default = folder.write("d.yaml", "seeds: [9]\n");
  const auto cells = experiment::plan(experiment::load_experiment(
                                          by_default, {}, "training: {max_steps: 8}\ndata: {task: dyck}\n"))
                         .cells;
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_EQ(cells[0].config.data.task, "dyck");
}

TEST(ExperimentConfig, TellsAllThatIsWrong) {
  EXPECT_THAT(error_of([] { small_experiment("grid: {model.heads: 4}\nseeds: [1, 1]\nmetrics: [bleu]\n"); }),
              ::testing::AllOf(HasSubstr(":6: grid.model.heads: 4, expected a list of values"),
                               HasSubstr(":8: metrics: unknown key, did you mean evaluation.metrics?")));
  const std::string rules = error_of([] {
    small_experiment(
        "grid: {model.heads: [1, 1], seed: [1]}\nseeds: [1, 1]\nbaseline: {model.heads: 2}\n"
        "controls: [fixed_head_dim]\nevaluation: {metrics: [blue]}\n");
  });
  EXPECT_THAT(rules, HasSubstr(":6: grid: model.heads 1 is given twice"));
  EXPECT_THAT(rules,
              HasSubstr(":6: grid: seed is set by the experiment itself, expected seeds to list them"));
  EXPECT_THAT(rules, HasSubstr(":7: seeds: 1 is given twice"));
  EXPECT_THAT(rules, HasSubstr(":8: baseline: model.heads 2 is not in the grid"));
  EXPECT_THAT(error_of([] { small_experiment("evaluation: {metrics: [blue]}\n"); }),
              HasSubstr(":6: evaluation.metrics: \"blue\", expected some of bleu, "));
  EXPECT_THAT(error_of([] { small_experiment("controls: [fixed_head_dim]\n"); }),
              HasSubstr(":6: controls: fixed_head_dim needs head_dim, or a baseline to take it from"));
}

TEST(ExperimentConfig, TellsWhatIsWrongInItsFileItsBaseAndOverridesTogether) {
  const Folder folder;
  const std::string file = folder.write("e.yaml", "base: none.yaml\nseed: [1]\n");
  const std::vector<std::string> overrides{"model.heads"};
  const auto message = [&] { return error_of([&] { experiment::load_experiment(file, overrides, ""); }); };
  EXPECT_EQ(message(), file + ":2: seed: unknown key, did you mean seeds?\n" + file +
                           ":1: base: " + folder.path +
                           "/none.yaml: no such file, expected a YAML configuration\n--set model.heads: "
                           "expected key.path=value, such as "
                           "model.heads=4");
  folder.write("e.yaml", "base: [1]\n");
  EXPECT_EQ(message(), file +
                           ":1: base: a list, expected a path, a mapping or null\n--set model.heads: "
                           "expected key.path=value, such as model.heads=4");
}

TEST(ExperimentConfig, HasMarginsOfItsMetrics) {
  const auto experiment =
      small_experiment("evaluation: {metrics: [loss, bleu], equivalence: {bleu: 0.5, loss: 1}}\n");
  EXPECT_EQ(experiment.config.evaluation.equivalence.find("bleu"), 0.5);
  EXPECT_EQ(experiment.config.evaluation.equivalence.find("chrf"), std::nullopt);
  EXPECT_THAT(experiment::dump(experiment), HasSubstr("equivalence: {bleu: 0.5, loss: 1}"));
  EXPECT_THAT(error_of([] { small_experiment("evaluation: {equivalence: {bleu: 1}}\n"); }),
              HasSubstr(":6: evaluation.equivalence: \"bleu\", expected some of metrics"));
  EXPECT_THAT(error_of([] { small_experiment("evaluation: {equivalence: {loss: 0}}\n"); }),
              HasSubstr(":6: evaluation.equivalence.loss: 0, expected a number above 0"));
}

TEST(ExperimentConfig, RefusesKeysThatOverlap) {
  const std::string message = error_of([] {
    small_experiment(
        "grid: {model.heads: [1, 4], model.heads.encoder: [[1, 1]], training: [{max_steps: 3}], "
        "training.head_gates.lambda: [0, 1]}\n");
  });
  EXPECT_THAT(message,
              HasSubstr(":6: grid: model.heads and model.heads.encoder overlap, expected keys of which"));
  EXPECT_THAT(message, HasSubstr(":6: grid: training and training.head_gates.lambda overlap"));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  // One key begins with the other's letters.
  small_experiment("grid: {model.norm: [pre], model.norm_eps: [1.0e-6], model.heads: [1]}\n");
}

TEST(Plan, IsTheProductOfGridControlsAndSeeds) {
  const Plan plan = experiment::plan(small_experiment(
      "grid: {model.heads: [1, 4], model.d_ff: [64, 128]}\nseeds: [5, 6]\ncontrols: [none, partition]\n"));
  ASSERT_EQ(plan.cells.size(), 16U);
  EXPECT_EQ(experiment::text(plan.cells[0].point), "model.heads 1, model.d_ff 64");
  EXPECT_EQ(experiment::text(plan.cells[4].point), "model.heads 1, model.d_ff 128");
  EXPECT_EQ(plan.cells[1].seed, 6U);
  EXPECT_EQ(plan.cells[2].control, Control::partition);
  EXPECT_EQ(int{plan.cells[15].config.model.heads}, 4);
  std::set<std::string> ids;
  for (const Cell& cell : plan.cells) ids.insert(cell.id);
  EXPECT_EQ(ids.size(), 8U);  // partition changes nothing here: the same runs
}

TEST(Plan, HasIdsOfWhatCanChangeAResult) {
  const auto id = [](const std::vector<std::string>& overrides) {
    return experiment::plan(small_experiment("seeds: [5]\n", overrides)).cells.front().id;
  };
  const std::string plain = id({});
  EXPECT_EQ(plain.size(), 16U);
  EXPECT_EQ(plain.find_first_not_of("0123456789abcdef"), plain.npos);
  EXPECT_EQ(id({"name=other", "training.keep_last=1", "training.checkpoint_every=2",
                "training.diagnostics_every=3", "model.head_dim=32", "model.dropout=0.1"}),
            plain);
  EXPECT_NE(id({"training.max_steps=13"}), plain);
  EXPECT_NE(id({"decoding.beam_size=2"}), plain);
  EXPECT_NE(id({"seed=1"}), id({"model.d_ff=64"}));
  EXPECT_EQ(id({"seed=1"}), plain);  // seeds are the experiment's
}

/// FNV-1a of the text, 64 bits: what ids of the first version have always been.
TEST(Plan, HasIdsOfTheVersionOfTheToyLanguage) {
  train::Config config;
  EXPECT_EQ(experiment::cell_id(config, 1), "cbf29ce484222325");  // of no text
  EXPECT_EQ(experiment::cell_id(config, 2), "cbf29ce484222325");
  config.data.task = "grammar";
  EXPECT_EQ(experiment::cell_id(config, 1), "1644e53225b72c16");  // data.task=grammar
  EXPECT_EQ(experiment::cell_id(config, 2), "ddc555b2b0de1501");  // language=2, data.task=grammar
}

TEST(Plan, KnowsItsBaseWhateverTheGrid) {
  const auto base = [](const std::string& rest, const std::vector<std::string>& overrides = {}) {
    return experiment::base_id(small_experiment(rest, overrides));
  };
  EXPECT_EQ(base("grid: {model.heads: [1, 4]}\n"), base("grid: {model.heads: [8]}\nseeds: [7]\n"));
  EXPECT_NE(base("grid: {model.heads: [1, 4]}\n"), base("grid: {model.heads: [1, 4]}\n", {"model.d_ff=64"}));
}

TEST(Plan, TellsAllThatIsWrongInAnyCellOnce) {
  const std::string message = error_of([] {
    experiment::plan(
        small_experiment("grid: {model.heads: [3, 4, 5], model.head: [1]}\nseeds: [5, 6]\nevaluation: "
                         "{splits: [length], metrics: "
                         "[slot_accuracy]}\n"));
  });
  EXPECT_THAT(message, HasSubstr(":6: model.head: unknown key, did you mean model.heads?"));
  const std::string rules = error_of([] {
    experiment::plan(
        small_experiment("grid: {model.heads: [3, 4, 5]}\nseeds: [5, 6]\nevaluation: {splits: [length], "
                         "metrics: [slot_accuracy]}\n"));
  });
  EXPECT_THAT(rules, HasSubstr(":6: model.heads: 3 does not divide d_model 32"));
  EXPECT_THAT(rules, HasSubstr(":6: model.heads: 5 does not divide d_model 32"));
  EXPECT_THAT(rules, HasSubstr(":8: evaluation.splits: \"length\", but data.task copy has no such split"));
  EXPECT_THAT(rules, HasSubstr(":8: evaluation.metrics: slot_accuracy is of the toy language"));
  EXPECT_EQ(std::count(rules.begin(), rules.end(), '\n'), 3) << rules;
}

TEST(Plan, NeedsTheFilesThatAreTrainedAndEvaluatedOn) {
  const auto message = [](const std::string& data) {
    return error_of([&] {
      experiment::plan(small_experiment("evaluation: {splits: [test, valid, train]}\n", {"data=" + data}));
    });
  };
  EXPECT_EQ(
      message("{train: {source: a, target: b}, valid: {source: c, target: d}, test: {source: e, target: f}}"),
      "");
  const std::string none = message("{task: files}");
  EXPECT_THAT(none, HasSubstr(":1: base: no files are given in data.train"));
  EXPECT_THAT(none, HasSubstr(":6: evaluation.splits: \"test\", but no files are given in data.test"));
  EXPECT_THAT(none, HasSubstr(":6: evaluation.splits: \"valid\", but no files are given in data.valid"));
  EXPECT_EQ(std::count(none.begin(), none.end(), '\n'), 2) << none;
}

TEST(Controls, FixedHeadDimMatchesParametersThroughDff) {
  const Plan plan =
      experiment::plan(small_experiment(heads_grid + "controls: [partition, fixed_head_dim]\n"));
  ASSERT_EQ(plan.cells.size(), 6U);
  const int layers = 3, slope = layers * (2 * 32 + 1);  // parameters of one more feature of d_ff
  for (std::size_t i = 0; i < 6; i += 2) {
    const Cell &partition = plan.cells[i], &fixed = plan.cells[i + 1];
    EXPECT_EQ(fixed.config.model.key_width(), 8);  // that of four heads
    EXPECT_EQ(fixed.config.model.value_width(), 8);
    EXPECT_EQ(int{fixed.config.model.heads}, int{partition.config.model.heads});
    EXPECT_LE(2 * std::abs(parameters(fixed) - parameters(partition)), slope);
  }
  EXPECT_GT(plan.cells[1].config.model.d_ff, 128);  // one head: narrow attention
  EXPECT_LT(plan.cells[5].config.model.d_ff, 128);
  EXPECT_EQ(plan.cells[2].id, plan.cells[3].id);  // the baseline is the same model under both
  const auto given =
      experiment::plan(small_experiment(heads_grid + "controls: [fixed_head_dim]\nhead_dim: 4\n"));
  EXPECT_EQ(given.cells[0].config.model.key_width(), 4);
  EXPECT_THAT(error_of([] {
                experiment::plan(small_experiment(heads_grid + "controls: [fixed_head_dim]\nhead_dim: 64\n"));
              }),
              ::testing::AllOf(
                  HasSubstr(":9: controls: fixed_head_dim: 8 heads of 64 features in 2 + 1 layers have "),
                  HasSubstr("expected a larger d_ff or a smaller head_dim")));
}

TEST(Controls, HeadDimAloneKeepsTheNumberOfHeads) {
  const Plan plan = experiment::plan(small_experiment(heads_grid + "controls: [head_dim]\n"));
  for (const Cell& cell : plan.cells) {
    EXPECT_EQ(int{cell.config.model.heads}, 4);
    EXPECT_EQ(cell.config.model.d_ff, 128);
  }
  EXPECT_EQ(plan.cells[0].config.model.key_width(), 32);
  EXPECT_EQ(plan.cells[2].config.model.key_width(), 4);
}

TEST(Controls, DepthForHeadsLaysHeadsOneAfterTheOther) {
  const Plan plan =
      experiment::plan(small_experiment(heads_grid + "controls: [partition, depth_for_heads]\n"));
  const nn::ModelConfig& deep = plan.cells[3].config.model;
  EXPECT_EQ(int{deep.heads}, 1);
  EXPECT_EQ(deep.key_width(), 8);
  EXPECT_EQ(deep.encoder_layers, 8);
  EXPECT_EQ(deep.decoder_layers, 4);
  const int slope = 12 * (2 * 32 + 1);
  EXPECT_LE(2 * std::abs(parameters(plan.cells[3]) - parameters(plan.cells[2])), slope);
  EXPECT_EQ(plan.cells[0].id, plan.cells[1].id);  // one head is one head
}

TEST(Controls, LearningRateSearchTakesTheBestTrialOfEveryPoint) {
  const auto experiment = small_experiment(
      "grid: {model.heads: [1, 4]}\nseeds: [5, 6]\ncontrols: [learning_rate_search]\nlearning_rate_factors: "
      "[0.5, 1, 2]\n");
  const Plan first = experiment::plan(experiment);
  ASSERT_EQ(first.cells.size(), 6U);  // the same number of trials for every point, at the first seed
  EXPECT_EQ(first.undecided, 4);
  for (const Cell& cell : first.cells) EXPECT_EQ(cell.seed, 5U);
  EXPECT_EQ(first.cells[2].trial, 2);
  EXPECT_EQ(first.cells[2].config.training.schedule.learning_rate, 0.04);
  experiment::TrialScores scores;
  for (std::size_t i = 0; i < 6; ++i) scores[first.cells[i].id] = i == 0 || i == 5 ? 90 : 80;
  const Plan second = experiment::plan(experiment, scores);
  ASSERT_EQ(second.cells.size(), 10U);
  EXPECT_EQ(second.undecided, 0);
  EXPECT_EQ(second.cells[3].id, first.cells[0].id);
  EXPECT_FALSE(second.cells[3].trial);
  EXPECT_EQ(second.cells[4].config.training.schedule.learning_rate, 0.01);
  EXPECT_EQ(second.cells[4].seed, 6U);
  EXPECT_EQ(second.cells[8].config.training.schedule.learning_rate, 0.04);
  for (auto& [id, score] : scores) score = 0;
  // A tie says nothing against the point's own rate.
  for (const Cell& cell : experiment::plan(experiment, scores).cells)
    EXPECT_TRUE(cell.trial || cell.config.training.schedule.learning_rate == 0.02);
}

TEST(Plan, IsThatOfTheExperimentsThatAreHere) {
  const auto plan_of = [](const std::string& name) {
    const std::string path = std::string(POLYHEAD_SOURCE_DIR) + "/experiments/" + name + "/experiment.yaml";
    return experiment::plan(experiment::load_experiment(path, {}, "")).cells;
  };
  EXPECT_EQ(plan_of("demo").size(), 9U);
  const std::vector<Cell> cells = plan_of("head_count_grammar");
  EXPECT_EQ(cells.size(), 60U);
  std::set<std::string> runs;
  for (const Cell& cell : cells) runs.insert(cell.id);
  EXPECT_EQ(runs.size(), 55U);  // 16 heads of 8 features are the same model under both controls
}

/// Cells that differ in the number of heads alone are paired: same weights at the start, same batches throughout.
TEST(Pairing, ModelsThatDifferInHeadsStartFromTheSameBitsAndSeeTheSameBatches) {
  const Plan plan = experiment::plan(small_experiment(heads_grid + "controls: [partition]\n"));
  const auto data = [&](std::size_t i) { return train::load_training_data(plan.cells[i].config, nullptr); };
  const train::TrainingData one = data(0), eight = data(2);
  const nn::Transformer a = train::make_model(plan.cells[0].config, one.pipeline),
                        b = train::make_model(plan.cells[2].config, eight.pipeline);
  ASSERT_EQ(int{a.config().heads}, 1);
  ASSERT_EQ(int{b.config().heads}, 8);
  ASSERT_EQ(a.parameters().slab_size(), b.parameters().slab_size());
  EXPECT_EQ(std::memcmp(a.parameters().slab().data, b.parameters().slab().data,
                        sizeof(float) * static_cast<std::size_t>(a.parameters().slab_size())),
            0);
  for (const std::uint64_t epoch : {0, 1}) {
    const auto plan_of = [&](const train::TrainingData& of, const Cell& cell) {
      return data::BatchPlan::training(of.corpus, cell.config.training.batch_tokens, cell.config.seed, epoch);
    };
    const data::BatchPlan x = plan_of(one, plan.cells[0]), y = plan_of(eight, plan.cells[2]);
    ASSERT_EQ(x.size(), y.size());
    for (std::int64_t batch = 0; batch < x.size(); ++batch) {
      ASSERT_TRUE(std::equal(x[batch].begin(), x[batch].end(), y[batch].begin(), y[batch].end()));
      for (const std::int32_t pair : x[batch]) {
        EXPECT_TRUE(std::ranges::equal(one.corpus.source(pair), eight.corpus.source(pair)));
        EXPECT_TRUE(std::ranges::equal(one.corpus.target(pair), eight.corpus.target(pair)));
      }
    }
  }
}

TEST(Workload, CountsWhatModelsCost) {
  const Plan plan = experiment::plan(small_experiment(heads_grid));
  experiment::Workloads workloads;
  const experiment::Workload& workload = workloads.of(plan.cells[0].config);
  const auto one = workload.costs(plan.cells[0].config.model),
             four = workload.costs(plan.cells[1].config.model);
  EXPECT_EQ(one.parameters, four.parameters);
  EXPECT_EQ(one.flops_per_token, four.flops_per_token);
  EXPECT_DOUBLE_EQ(4 * one.score_bytes, four.score_bytes);
  // 3 to 12 letters and an end token on both sides, equally often: of two encoder layers and one decoder layer
  // 4·(2n² + n² + n²) bytes.
  double expected = 0;
  for (int n = 4; n <= 13; ++n) expected += 16. * n * n / 10;
  EXPECT_NEAR(one.score_bytes, expected, 0.15 * expected);
  EXPECT_EQ(workload.updates(plan.cells[0].config.training), 12);
  EXPECT_GT(workload.seconds_per_update(plan.cells[0].config), 0);
}

}  // namespace
}  // namespace polyhead::testing
