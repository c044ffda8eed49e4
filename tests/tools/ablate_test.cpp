#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tools/program.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two models, two seeds, a dozen updates each.
std::string experiment_file(const std::string& more = "") {
  return write_text("experiment.yaml", R"(name: tiny_heads
base:
  data: {task: copy, train_size: 200, valid_size: 10, test_size: 20}
  tokenizer: {kind: word}
  model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 1, d_ff: 32, max_length: 40}
  training: {batch_tokens: 128, max_steps: 12, learning_rate: 0.02, warmup_steps: 4, validate_every: 6, checkpoint_every: 3}
  decoding: {beam_size: 1}
grid: {model.heads: [1, 4]}
seeds: [3, 4]
evaluation: {splits: [test], metrics: [exact_match, loss], limit: 10}
baseline: {model.heads: 1}
)" + more);
}

Arguments ablate(const std::string& experiment, const std::string& out, const Arguments& more = {}) {
  Arguments arguments{"ablate", experiment, "--out", out, "--jobs", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<Json> rows(const std::string& folder) {
  std::istringstream lines(read_text(folder + "/results.jsonl"));
  std::vector<Json> result;
  for (std::string line; std::getline(lines, line);) result.push_back(Json::parse(line));
  return result;
}

/// Without what is measured by a clock.
std::vector<Json> timeless(const std::string& folder) {
  std::vector<Json> result = rows(folder);
  for (Json& row : result)
    for (const char* key : {"tokens_per_second", "train_seconds", "evaluate_seconds"}) row.erase(key);
  return result;
}

/// An experiment that ran to its end, once.
const std::string& finished_folder() {
  static const std::string folder = [] {
    const std::string path = fresh_path("ablation");
    const Outcome outcome = run(ablate(experiment_file(), path));
    if (outcome.status != 0) throw std::runtime_error("ablate failed: " + outcome.err);
    return path;
  }();
  return folder;
}

std::string copy_of_finished() {
  const std::string folder = fresh_path("ablation");
  fs::copy(finished_folder(), folder, fs::copy_options::recursive);
  return folder;
}

TEST(Ablate, ListsItsCellsInADryRun) {
  const std::string out = fresh_path("ablation");
  const Outcome outcome = run(ablate(experiment_file(), out, {"--dry-run"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("parameters"));
  EXPECT_THAT(outcome.out, HasSubstr("model.heads 4"));
  EXPECT_THAT(outcome.out, HasSubstr("4 cells, 4 to run"));
  EXPECT_FALSE(fs::exists(out));
  const Outcome after = run(ablate(experiment_file(), finished_folder(), {"--dry-run"}));
  EXPECT_THAT(after.out, HasSubstr("4 cells, 0 to run"));
  EXPECT_EQ(after.err, "");
  const Outcome other =
      run(ablate(experiment_file(), finished_folder(), {"--dry-run", "--set", "model.d_ff=24"}));
  EXPECT_THAT(other.err, HasSubstr("results.jsonl: 4 cells belong to another base ("));
}

TEST(Ablate, RunsNoMoreCellsSideBySideThanThereAreProcessors) {
  Arguments arguments = ablate(experiment_file(), finished_folder(), {"--dry-run"});
  arguments.at(5) = "1000";
  EXPECT_THAT(run(arguments).err, HasSubstr("polyhead: --jobs 1000: there are "));
}

TEST(Ablate, WritesTidyRowsAndATable) {
  const std::vector<Json> all = rows(finished_folder());
  ASSERT_EQ(all.size(), 2U * 2 * 3);  // points, seeds; valid loss, test exact_match and loss
  for (const Json& row : all) {
    EXPECT_EQ(row.at("status"), "finished");
    EXPECT_EQ(row.at("control"), "none");
    EXPECT_EQ(row.at("step"), 12);
    EXPECT_EQ(row.at("parameters"), all.front().at("parameters"));
    EXPECT_GT(row.at("tokens_per_second"), 0);
    EXPECT_TRUE(row.at("value").is_number());
  }
  EXPECT_EQ(all[0].at("split"), "valid");
  EXPECT_EQ(all[1].at("metric"), "exact_match");
  EXPECT_EQ(all[2].at("metric"), "loss");
  EXPECT_EQ(all[2].at("limit"), 10);
  EXPECT_EQ(all[3].at("seed"), 4);
  EXPECT_EQ(all[6].at("grid").at("model.heads"), 4);
  EXPECT_EQ(all[6].at("score_bytes").get<double>(), 4 * all[0].at("score_bytes").get<double>());
  EXPECT_EQ(all[6].at("flops_per_token"), all[0].at("flops_per_token"));
  const std::string csv = read_text(finished_folder() + "/results.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 13);
  EXPECT_TRUE(csv.starts_with("model.heads,cell,base,control,trial,seed,split,metric,phenomenon,value,"));
  const std::string summary = read_text(finished_folder() + "/summary.txt");
  EXPECT_THAT(summary, HasSubstr("exact_match on test"));
  EXPECT_THAT(summary, HasSubstr("p (Holm)"));
  EXPECT_THAT(summary, HasSubstr("bootstrap: 95% percentile interval over seeds, then sentences"));
  EXPECT_THAT(summary, Not(HasSubstr("without a bootstrap interval")));
  EXPECT_THAT(summary, HasSubstr("Differences are to model.heads 1, paired by seed"));
  const std::vector<nlohmann::json> points = read_json_lines(finished_folder() + "/summary.jsonl");
  ASSERT_EQ(points.size(), 2U * 2);  // points, metrics
  EXPECT_EQ(points[2].at("grid").at("model.heads"), 4);
  EXPECT_EQ(points[2].at("difference").at("pairs"), 2);
  EXPECT_TRUE(points[2].at("difference").at("bootstrap").at("low").is_number());
  const std::string cell = finished_folder() + "/cells/" + all[0].at("cell").get<std::string>();
  EXPECT_EQ(read_json_lines(cell + "/sentences-test.jsonl").size(), 10U);
  EXPECT_THAT(read_text(cell + "/config.yaml"), HasSubstr("seed: 3\n"));
}

TEST(Ablate, RunsNothingTwice) {
  const std::string folder = copy_of_finished(), before = read_text(folder + "/results.jsonl");
  fs::remove_all(folder + "/cells");  // the rows alone count
  const Outcome outcome = run(ablate(experiment_file(), folder));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("all 4 cells were done already"));
  EXPECT_EQ(read_text(folder + "/results.jsonl"), before);
  EXPECT_TRUE(fs::is_empty(folder + "/cells"));
  EXPECT_EQ(outcome.out, read_text(folder + "/summary.txt"));
  // But what they made of every sentence is gone.
  EXPECT_THAT(outcome.out, HasSubstr("4 figures without a bootstrap interval: " + folder + "/cells/"));
}

TEST(Ablate, RunsOnlyWhatIsNew) {
  const std::string folder = copy_of_finished();
  fs::remove_all(folder + "/cells");
  std::string text = read_text(experiment_file());
  text.replace(text.find("[3, 4]"), 6, "[3, 4, 9]");
  const Outcome outcome = run(ablate(write_text("experiment.yaml", text), folder));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("2 cells done"));
  const std::vector<Json> before = rows(finished_folder()), after = rows(folder);
  ASSERT_EQ(after.size(), 18U);
  EXPECT_EQ(std::vector<Json>(after.begin(), after.begin() + 6),
            std::vector<Json>(before.begin(), before.begin() + 6));
  EXPECT_EQ(after[6].at("seed"), 9);
}

TEST(Ablate, KeepsCellsOfAnotherBaseOutOfItsTables) {
  const std::string folder = copy_of_finished();
  std::string text = read_text(experiment_file());
  text.replace(text.find("[3, 4]"), 6, "[3]");
  const std::string file = write_text("experiment.yaml", text);
  const Outcome outcome = run(ablate(file, folder, {"--set", "model.d_ff=24"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("results.jsonl: 4 cells belong to another base ("));
  EXPECT_EQ(rows(folder).size(), 6U + 12U);
  EXPECT_THAT(outcome.out, HasSubstr("1/1"));
  const Outcome fewer = run(ablate(file, copy_of_finished()));
  EXPECT_THAT(fewer.err, HasSubstr("2 cells are not in this experiment's grid, seeds and controls"));
}

TEST(Ablate, CountsWhatDiverges) {
  std::string text = read_text(experiment_file());
  text.replace(text.find("{model.heads: [1, 4]}"), 21, "{training.learning_rate: [0.02, 1.0e+30]}");
  text.replace(text.find("{model.heads: 1}"), 16, "{training.learning_rate: 0.02}");
  const std::string folder = fresh_path("ablation"), file = write_text("experiment.yaml", text);
  const Outcome outcome = run(ablate(file, folder));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(" diverged after "));
  const std::vector<Json> all = rows(folder);
  ASSERT_EQ(all.size(), 2U * 3 + 2);
  EXPECT_EQ(all.back().at("status"), "diverged");
  EXPECT_TRUE(all.back().at("split").is_null());
  EXPECT_THAT(all.back().at("message").get<std::string>(), HasSubstr("training failed at step "));
  const Outcome again = run(ablate(file, folder));
  EXPECT_THAT(again.err, HasSubstr("all 4 cells were done already"));
}

TEST(Ablate, TriesAgainWhatFailed) {
  const std::string folder = copy_of_finished();
  const std::string id = rows(folder).back().at("cell");
  std::string kept;
  for (const Json& row : rows(folder))
    if (row.at("cell") != id) kept += row.dump() + "\n";
  std::ofstream(folder + "/results.jsonl") << kept;
  fs::remove_all(folder + "/cells/" + id);
  fs::create_directories(folder + "/cells/" + id + "/train.jsonl");  // not a file
  const Outcome outcome = run(ablate(experiment_file(), folder));
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("failed after"));
  EXPECT_EQ(rows(folder).back().at("status"), "failed");
  EXPECT_THAT(rows(folder).back().at("message").get<std::string>(), HasSubstr("train.jsonl"));
  fs::remove_all(folder + "/cells/" + id);
  EXPECT_EQ(run(ablate(experiment_file(), folder)).status, 0);
  EXPECT_EQ(timeless(folder), timeless(finished_folder()));
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::istringstream ids(read_text("/proc/" + id + "/task/" + id + "/children"));
  return {std::istream_iterator<pid_t>(ids), {}};
}

/// Whether a process is there and has not ended; one that has ended may wait for somebody to ask for its status.
bool lives(pid_t id) {
  const std::string stat = read_text("/proc/" + std::to_string(id) + "/stat");
  return !stat.empty() && stat.find(") Z ") == stat.npos && stat.find(") X ") == stat.npos;
}

bool has_two_processors() { return std::thread::hardware_concurrency() >= 2; }

/// An experiment whose cells would take hours, once two of them train.
bool two_cells_train(Process& process, const std::string& folder) {
  return wait_for(process, [&] {
    int training = 0;
    if (fs::exists(folder + "/cells"))
      for (const auto& cell : fs::directory_iterator(folder + "/cells"))
        training += read_text(cell.path().string() + "/train.jsonl").find("\"step\":3,") != std::string::npos;
    return training == 2;
  });
}

TEST(Ablate, TakesItsChildrenAlongWhenItIsKilled) {
  if (!has_two_processors()) GTEST_SKIP() << "one processor runs one cell at a time";
  const std::string folder = fresh_path("ablation");
  Process process(ablate(experiment_file(), folder, {"--set", "training.max_steps=1000000"}));
  ASSERT_TRUE(two_cells_train(process, folder)) << process.wait().err;
  const std::vector<pid_t> children = children_of(process.id());
  ASSERT_EQ(children.size(), 2U);
  process.signal(SIGKILL);
  process.wait();
  for (const pid_t child : children)
    for (int i = 0; lives(child); ++i) {
      ASSERT_LT(i, 2000) << "a child lives on";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

TEST(Ablate, GoesOnAfterAnInterruptionAsIfThereHadBeenNone) {
  const std::string folder = fresh_path("ablation");
  {
    Process process(ablate(experiment_file(), folder));
    while (process.running() && !fs::exists(folder + "/results.jsonl"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.signal(SIGINT);
    const Outcome stopped = process.wait();
    ASSERT_EQ(stopped.status, 128 + SIGINT) << stopped.err;
    EXPECT_THAT(stopped.err, HasSubstr("the same command goes on"));
  }
  EXPECT_LT(rows(folder).size(), 12U);
  const Outcome outcome = run(ablate(experiment_file(), folder));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(timeless(folder), timeless(finished_folder()));
}

TEST(Ablate, TellsItsCellsToSaveWhenItIsInterrupted) {
  if (!has_two_processors()) GTEST_SKIP() << "one processor runs one cell at a time";
  const std::string folder = fresh_path("ablation");
  Process process(
      ablate(experiment_file(), folder,
             {"--set", "training.max_steps=1000000", "--set", "training.checkpoint_every=1000000"}));
  ASSERT_TRUE(two_cells_train(process, folder)) << process.wait().err;
  const Outcome second = run(ablate(experiment_file(), folder, {"--set", "training.max_steps=1000000"}));
  EXPECT_EQ(second.status, 4);
  EXPECT_THAT(second.err, HasSubstr(folder + ": is being run by another process"));
  process.signal(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, 128 + SIGTERM) << outcome.err;
  EXPECT_TRUE(rows(folder).empty());
  EXPECT_EQ(outcome.out, "") << "no table of nothing";
  for (const auto& cell : fs::directory_iterator(folder + "/cells"))
    EXPECT_FALSE(fs::is_empty(cell.path() / "checkpoints")) << cell.path();
}

TEST(Ablate, TellsAllThatIsWrongBeforeItRunsAnything) {
  std::string text = read_text(experiment_file());
  text.replace(text.find("[1, 4]"), 6, "[1, 3, many]");
  text.replace(text.find("[test]"), 6, "[test, length]");
  const std::string folder = fresh_path("ablation"), file = write_text("experiment.yaml", text);
  const Outcome outcome = run(ablate(file, folder));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr(file + ":8: model.heads: 3 does not divide d_model 16"));
  EXPECT_THAT(outcome.err, HasSubstr("model.heads: \"many\", expected"));
  EXPECT_THAT(outcome.err,
              HasSubstr(file + ":10: evaluation.splits: \"length\", but data.task copy has no such split"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 3) << outcome.err;
  EXPECT_FALSE(fs::exists(folder));
  const Outcome unknown = run(ablate(write_text("e.yaml", "grids: {model.heads: [1]}\n"), folder));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr(":1: grids: unknown key, did you mean grid?"));
  const Outcome missing = run({"ablate", "/none/experiment.yaml"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("/none/experiment.yaml: no such file"));
}

TEST(Ablate, FailsACellWhoseFilesAreDamagedAndGoesOn) {
  const std::string folder = fresh_path("ablation");
  fs::copy(finished_folder(), folder, fs::copy_options::recursive);
  fs::remove(folder + "/results.jsonl");
  const std::string id = rows(finished_folder()).front().at("cell");
  const std::string log = folder + "/cells/" + id + "/train.jsonl", text = read_text(log);
  std::ofstream(log) << "{\"step\":1}\n" << text;  // no log of training, though training goes on after it
  const Outcome outcome = run(ablate(experiment_file(), folder));
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  const std::vector<Json> all = rows(folder);
  ASSERT_EQ(all.size(), 1U + 3U * 3U) << outcome.err;
  EXPECT_EQ(all[0].at("cell"), id);
  EXPECT_EQ(all[0].at("status"), "failed");
  EXPECT_EQ(all[0].at("message").get<std::string>(), log + ": not a log of training: {\"step\":1}");
}

TEST(Ablate, RunsAnewWhatHasOtherData) {
  const std::string train = write_text("train", "a b c\nb c\nc a\na\n"), test = write_text("test", "a c\n");
  const std::string folder = fresh_path("ablation");
  std::string text = read_text(experiment_file());
  text.replace(text.find("[3, 4]"), 6, "[3]");
  text.replace(text.find("{task: copy, train_size: 200, valid_size: 10, test_size: 20}"), 60,
               "{train: {source: " + train + ", target: " + train + "}, test: {source: " + test +
                   ", target: " + test + "}}");
  const Arguments command = ablate(write_text("experiment.yaml", text), folder);
  ASSERT_EQ(run(command).status, 0);
  std::ofstream(test) << "b c\n";
  EXPECT_THAT(run(command).err, HasSubstr("2 cells belong to another base ("));
  EXPECT_THAT(run(command).err, HasSubstr("all 2 cells were done already"));
  fs::remove(train);
  EXPECT_THAT(run(command).err, HasSubstr("all 2 cells were done already")) << "what is gone is as it was";
}

TEST(Ablate, TellsOfAllFilesThatAreNotThereBeforeItRunsAnything) {
  const std::string text = write_text("text", "a b c\nb c\n"), empty = write_text("empty", "");
  const std::string folder = fresh_path("ablation");
  const auto data = [&](const std::string& valid, const std::string& test) {
    return ablate(experiment_file(), folder,
                  {"--set",
                   "data={train: {source: " + text + ", target: " + text + "}, valid: {source: " + valid +
                       ", target: " + text + "}, test: {source: " + test + ", target: " + test + "}}",
                   "--set", "training.initial_checkpoint=/none/model.h5"});
  };
  const Outcome outcome = run(data(empty, "/none/test"));
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(lines_of(outcome.err),
            (std::vector<std::string>{"polyhead: " + empty + " has 0 lines, but " + text + " has 2",
                                      "polyhead: data file /none/test: No such file or directory",
                                      "polyhead: /none/model.h5: cannot read: No such file or directory"}));
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace polyhead::testing
