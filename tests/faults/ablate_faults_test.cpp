#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "faults/faults.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

/// Two cells, a few updates each, one after the other: the same calls every time.
Arguments ablation(const std::string& out) {
  static const std::string experiment = write_text("faults.yaml", R"(name: faults
base:
  data: {task: copy, train_size: 60, valid_size: 5, test_size: 5}
  tokenizer: {kind: word}
  model: {encoder_layers: 1, decoder_layers: 1, d_model: 8, heads: 1, d_ff: 8, max_length: 40}
  training: {batch_tokens: 128, max_steps: 4, validate_every: 4, checkpoint_every: 2}
  decoding: {beam_size: 1}
grid: {model.heads: [1, 2]}
seeds: [3]
evaluation: {splits: [test], metrics: [loss]}
baseline: {model.heads: 1}
)");
  return {"ablate", experiment, "--out", out, "--jobs", "1"};
}

/// The rows of results.jsonl without what is measured by a clock.
std::vector<json> timeless_rows(const std::string& folder) {
  std::vector<json> rows = read_json_lines(folder + "/results.jsonl");
  for (json& row : rows)
    for (const char* key : {"tokens_per_second", "train_seconds", "evaluate_seconds"}) row.erase(key);
  return rows;
}

struct WholeAblation {
  std::string folder = fresh_path("ablation");
  FaultyOutcome outcome = run_with({}, folder, ablation(folder));
};

const WholeAblation& whole() {
  static const WholeAblation ablation;
  return ablation;
}

/// That the same command goes on to the same results.
void expect_same_results(const std::string& folder) {
  const Outcome again = run(ablation(folder));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(timeless_rows(folder), timeless_rows(whole().folder));
  EXPECT_TRUE(fs::exists(folder + "/results.csv"));
  expect_no_temporaries(folder);
}

TEST(AblateFaults, OfTheDiskAreErrorsAndTheNextTimeGoesOn) {
  ASSERT_EQ(whole().outcome.status, 0) << whole().outcome.err;
  const std::vector<std::string> errors{"ENOSPC", "EIO", "full"};
  std::size_t next = 0;
  for (const std::int64_t number : numbers_of(whole().outcome.calls, 23)) {
    const std::string& error = errors[next++ % errors.size()];
    const std::string folder = fresh_path("ablation");
    const FaultyOutcome outcome = run_with({number, error}, folder, ablation(folder));
    const Call& call = outcome.calls.at(static_cast<std::size_t>(number - 1));
    SCOPED_TRACE(std::to_string(number) + ' ' + call.name + ' ' + call.path + ' ' + error);
    EXPECT_EQ(outcome.status, 4) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(reason(error)));
    EXPECT_THAT(outcome.left_open, ::testing::IsEmpty());
    expect_no_temporaries(folder);
    expect_same_results(folder);
    fs::remove_all(folder);
  }
}

/// An ablation of a cell that does not end, under way.
Process endless(const std::string& folder) {
  Arguments arguments = ablation(folder);
  arguments.insert(arguments.end(), {"--set", "training.max_steps=1000000"});
  return Process(arguments);
}

bool trains(const std::string& folder) {
  for (const std::string& file : files_in(folder))
    if (file.ends_with("/train.jsonl") && !read_text(folder + "/" + file).empty()) return true;
  return false;
}

TEST(AblateFaults, AFolderThatIsMovedIsNamed) {
  const std::string folder = fresh_path("ablation"), moved = fresh_path("moved");
  Process process = endless(folder);
  ASSERT_TRUE(wait_for(process, [&] { return trains(folder); })) << process.wait().err;
  fs::rename(folder, moved);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err,
              ::testing::EndsWith("polyhead: " + folder + ": was moved or removed while it was run\n"));
  EXPECT_FALSE(fs::exists(folder));
}

TEST(AblateFaults, AFolderThatAnotherProcessRunsInsteadIsItsOwn) {
  const std::string folder = fresh_path("ablation"), moved = fresh_path("moved");
  Process process = endless(folder);
  ASSERT_TRUE(wait_for(process, [&] { return trains(folder); })) << process.wait().err;
  process.signal(SIGSTOP);
  fs::rename(folder, moved);
  const Outcome second = run(ablation(folder));
  ASSERT_EQ(second.status, 0) << second.err;
  const std::vector<std::string> files = files_in(folder);
  process.signal(SIGCONT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              ::testing::EndsWith("polyhead: " + folder + ": was moved or replaced while it was run\n"));
  EXPECT_EQ(files_in(folder), files);
  EXPECT_EQ(timeless_rows(folder), timeless_rows(whole().folder));
  EXPECT_FALSE(fs::exists(moved + "/results.jsonl"));
}

TEST(AblateKills, LoseNoCell) {
  const auto size = static_cast<unsigned>(whole().outcome.calls.size());
  std::mt19937 random(3);
  for (int kills = 0; kills < (thorough() ? 60 : 3); ++kills) {
    const std::string folder = fresh_path("ablation");
    const std::int64_t number = random() % size + 1;
    const FaultyOutcome outcome = run_with({number, "kill"}, folder, ablation(folder));
    const Call& call = outcome.calls.at(static_cast<std::size_t>(number - 1));
    SCOPED_TRACE(std::to_string(number) + ' ' + call.name + ' ' + call.path);
    // The program itself, or one that trains or evaluates for it.
    EXPECT_TRUE(outcome.status == 128 + SIGKILL || outcome.status == 1) << outcome.status << outcome.err;
    expect_same_results(folder);
    fs::remove_all(folder);
  }
}

}  // namespace
}  // namespace polyhead::testing
