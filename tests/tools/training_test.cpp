#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "polyhead/kernels/bf16.h"
#include "polyhead/train/checkpoint.h"
#include "tools/program.h"
#include "tools/runs.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

Arguments train_arguments(const std::string& out, const Arguments& more = {}) {
  Arguments arguments{"train", tiny_config(), "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// An endless run, once it has logged some updates.
bool has_started(Process& process, const std::string& out) {
  return wait_for(process,
                  [&] { return read_text(out + "/train.jsonl").find("\"step\":3,") != std::string::npos; });
}

TEST(Training, LeavesConfigurationLogAndCheckpoints) {
  const std::string& run_folder = trained_run();
  EXPECT_EQ(losses(run_folder).size(), 40U);
  EXPECT_THAT(losses(run_folder), ::testing::Each(::testing::Gt(0.)));
  EXPECT_THAT(read_text(run_folder + "/config.yaml"), HasSubstr("d_model: 16\n"));
  EXPECT_EQ(newest_step(run_folder), 40);
}

TEST(Training, LearnsTheToyLanguageByDefault) {
  const std::string out = fresh_path("run");
  const Outcome outcome =
      run({"train", "--out", out, "--set", "training.max_steps=2", "--set", "data.train_size=2000"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(read_text(out + "/config.yaml"), HasSubstr("task: grammar\n"));
  EXPECT_EQ(losses(out).size(), 2U);
}

TEST(Training, DoesNotDependOnThreads) {
  const std::string out = fresh_path("run");
  ASSERT_EQ(run(train_arguments(out, {"--threads", "1", "--set", "training.max_steps=10"})).status, 0);
  const train::Checkpoint one = train::read_checkpoint(checkpoint(out, 10)),
                          two = train::read_checkpoint(checkpoint(trained_run(), 10));
  for (std::size_t i = 0; i < one.parameters.size(); ++i)
    EXPECT_TRUE(std::equal(one.parameters[i].values.begin(), one.parameters[i].values.end(),
                           two.parameters[i].values.begin()));
}

TEST(Training, StopsAndResumesAsIfItHadNot) {
  const std::string out = fresh_path("run");
  // 23: in the middle of an epoch, and not a checkpoint's step.
  ASSERT_EQ(run(train_arguments(out, {"--set", "training.max_steps=23"})).status, 0);
  ASSERT_EQ(newest_step(out), 23);
  const Outcome resumed = run(train_arguments(out, {"--resume"}));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resuming from " + checkpoint(out, 23)));
  expect_equal(checkpoint(out, 40), checkpoint(trained_run(), 40));
  EXPECT_EQ(losses(out), losses(trained_run()));
}

TEST(Training, SurvivesBeingKilled) {
  const std::string out = fresh_path("run");
  Process process(
      train_arguments(out, {"--set", "training.max_steps=1000000", "--set", "training.checkpoint_every=7"}));
  ASSERT_TRUE(wait_for(process, [&] { return newest_step(out) > 0; })) << process.wait().err;
  process.signal(SIGKILL);
  ASSERT_EQ(process.wait().status, 128 + SIGKILL);
  const std::string last = std::to_string(newest_step(out) + 9);
  const Arguments to_the_end{"--set", "training.max_steps=" + last, "--set", "training.checkpoint_every=7"};
  Arguments resume = to_the_end;
  resume.push_back("--resume");
  const Outcome resumed = run(train_arguments(out, resume));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const std::string straight = fresh_path("run");
  ASSERT_EQ(run(train_arguments(straight, to_the_end)).status, 0);
  expect_equal(checkpoint(out, std::stoll(last)), checkpoint(straight, std::stoll(last)));
  EXPECT_EQ(losses(out), losses(straight));
}

TEST(Training, ResumingAFinishedRunChangesNothing) {
  const std::string path = checkpoint(trained_run(), 40), log = trained_run() + "/train.jsonl";
  const std::string before = read_text(path), log_before = read_text(log);
  const Outcome outcome = run(train_arguments(trained_run(), {"--resume"}));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("ended at step 40 by training.max_steps"));
  EXPECT_TRUE(read_text(path) == before);
  EXPECT_EQ(read_text(log), log_before);
}

TEST(Training, SavesWhenInterrupted) {
  for (const int number : {SIGTERM, SIGINT}) {
    const std::string out = fresh_path("run");
    Process process(train_arguments(
        out, {"--set", "training.max_steps=1000000", "--set", "training.checkpoint_every=1000000"}));
    ASSERT_TRUE(has_started(process, out)) << process.wait().err;
    process.signal(number);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 128 + number) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("by a signal"));
    EXPECT_EQ(newest_step(out), static_cast<std::int64_t>(losses(out).size()));
    EXPECT_NO_THROW(train::read_checkpoint(checkpoint(out, newest_step(out))));
  }
}

TEST(Training, RefusesATableOfPositionsWithoutMeasure) {
  const std::string out = fresh_path("run");
  const Outcome outcome = run({"train", tiny_config(), "--out", out, "--set", "model.max_length=65536",
                               "--set", "model.d_model=8192"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("polyhead: model.max_length: 65536 times d_model 8192, expected at most 16777216"));
  EXPECT_FALSE(fs::exists(out));
}

TEST(Training, EndsAtOnceWhereNothingIsToBeSavedYet) {
  const std::string out = fresh_path("run");
  Process process(train_arguments(out, {"--set", "data.train_size=16777216"}));  // drawn for many seconds
  const fs::path threads = "/proc/" + std::to_string(process.id()) + "/task";
  const auto count = [&] { return std::distance(fs::directory_iterator(threads), {}); };
  ASSERT_TRUE(wait_for(process, [&] { return count() > 1; }));  // one waits for signals
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().status, 128 + SIGTERM);
  EXPECT_FALSE(fs::exists(out));
}

TEST(Training, EndsAtOnceAtASecondSignal) {
  const std::string out = fresh_path("run");
  // All pairs in one update, which takes seconds.
  Process process(
      train_arguments(out, {"--set", "training.batch_tokens=100000", "--set", "model.d_model=1024", "--set",
                            "model.encoder_layers=8", "--set", "training.max_steps=1000000"}));
  ASSERT_TRUE(wait_for(process, [&] { return fs::exists(out + "/train.jsonl"); })) << process.wait().err;
  process.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_TRUE(process.running());
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().status, 128 + SIGINT);
  EXPECT_EQ(newest_step(out), -1);
}

TEST(Training, RunsNoSignalHandlerWhereItComputes) {
  // oneDNN's kernels point the stack register into the heap: the frame of a handler would overwrite what lies there.
  const std::string out = fresh_path("run");
  Process process(train_arguments(out, {"--set", "training.max_steps=1000000"}));
  ASSERT_TRUE(has_started(process, out)) << process.wait().err;
  std::istringstream status(read_text("/proc/" + std::to_string(process.id()) + "/status"));
  std::string word;
  while (status >> word && word != "SigCgt:") continue;
  ASSERT_TRUE(status >> word);
  const std::uint64_t caught = std::stoull(word, nullptr, 16);
  for (const int number : {SIGINT, SIGTERM}) EXPECT_EQ(caught >> (number - 1) & 1, 0U) << word;
}

TEST(Training, InMixedPrecisionFollowsF32) {
  if (!kernels::has_bf16()) GTEST_SKIP() << "this machine has no products of bf16";
  const std::string single = fresh_path("run"), mixed = fresh_path("run");
  ASSERT_EQ(run(train_arguments(single)).status, 0);
  ASSERT_EQ(run(train_arguments(mixed, {"--set", "training.precision=bf16"})).status, 0);
  const std::vector<double> a = losses(single), b = losses(mixed);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_NE(a, b);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.02 * a[i]) << i;
}

TEST(Training, GoesOnInF32WhereThereAreNoProductsOfBf16) {
  const std::string single = fresh_path("run"), mixed = fresh_path("run");
  ::setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE", 1);
  const Outcome f32 = run(train_arguments(single)),
                bf16 = run(train_arguments(mixed, {"--set", "training.precision=bf16"}));
  ::unsetenv("DNNL_MAX_CPU_ISA");
  ASSERT_EQ(f32.status, 0) << f32.err;
  ASSERT_EQ(bf16.status, 0) << bf16.err;
  EXPECT_THAT(bf16.err, HasSubstr("training.precision: no bf16 products here"));
  EXPECT_THAT(f32.err, ::testing::Not(HasSubstr("bf16")));
  EXPECT_EQ(losses(single), losses(mixed));
}

TEST(Training, StopsWhenNumbersFail) {
  const std::string out = fresh_path("run");
  const Outcome outcome = run(
      train_arguments(out, {"--set", "training.learning_rate=1e30", "--set", "training.warmup_steps=2",
                            "--set", "training.schedule=constant", "--set", "training.checkpoint_every=1"}));
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("polyhead: training failed at step "));
  EXPECT_THAT(outcome.err, HasSubstr("learning rate "));
  EXPECT_THAT(outcome.err, HasSubstr("coder/"));  // of a parameter's path
  const std::int64_t step = newest_step(out);
  ASSERT_GT(step, 0);
  EXPECT_EQ(step, static_cast<std::int64_t>(losses(out).size()));
  EXPECT_NO_THROW(train::read_checkpoint(checkpoint(out, step)));
}

TEST(Training, NeedsResumeForAFolderWithARun) {
  const Outcome outcome = run(train_arguments(trained_run()));
  EXPECT_EQ(outcome.status, 4);
  EXPECT_EQ(outcome.err, "polyhead: " + trained_run() +
                             ": holds a run already; expected --resume, or another folder with --out\n");
}

TEST(Training, RefusesAFolderThatAnotherProcessTrains) {
  const std::string out = fresh_path("run");
  Process process(train_arguments(out, {"--set", "training.max_steps=1000000"}));
  ASSERT_TRUE(has_started(process, out)) << process.wait().err;
  const Outcome second = run(train_arguments(out, {"--resume", "--set", "training.max_steps=1000000"}));
  EXPECT_EQ(second.status, 4);
  EXPECT_EQ(second.err, "polyhead: " + out + ": is being trained by another process\n");
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().status, 128 + SIGTERM);
}

TEST(Training, RefusesOtherSettingsWhenResuming) {
  const Outcome outcome = run(train_arguments(trained_run(), {"--resume", "--set", "model.d_ff=64", "--set",
                                                              "seed=2", "--set", "training.max_steps=50"}));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("model.d_ff (32 -> 64)"));
  EXPECT_THAT(outcome.err, HasSubstr("seed (1 -> 2)"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("max_steps")));
}

TEST(Training, GoesBackToTheLastCheckpointThatIsWhole) {
  const std::string out = fresh_path("run");
  fs::copy(trained_run(), out, fs::copy_options::recursive);
  fs::resize_file(checkpoint(out, 40), fs::file_size(checkpoint(out, 40)) - 1);
  std::fstream file(checkpoint(out, 30), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5000);
  file.put('!');
  file.close();
  const Outcome outcome = run(train_arguments(out, {"--resume"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("skipped: " + checkpoint(out, 40) + ": is truncated"));
  EXPECT_THAT(outcome.err, HasSubstr("skipped: " + checkpoint(out, 30) + ": is damaged"));
  EXPECT_THAT(outcome.err, HasSubstr("resuming from " + checkpoint(out, 20)));
  EXPECT_TRUE(fs::exists(checkpoint(out, 40) + ".damaged"));
  expect_equal(checkpoint(out, 40), checkpoint(trained_run(), 40));
}

TEST(Training, SaysWhatIsWrongWithItsData) {
  const std::string source = write_text("source", "a b\nc d\n"), target = write_text("target", "a b\n");
  const std::string out = fresh_path("run");
  const Arguments files{"--set", "data.task=files",
                        "--set", "data.train.source=" + source,
                        "--set", "data.train.target=" + target};
  const Outcome unequal = run(train_arguments(out, files));
  EXPECT_EQ(unequal.status, 3);
  EXPECT_EQ(unequal.err, "polyhead: " + source + " has 2 lines, but " + target + " has 1\n");
  EXPECT_FALSE(fs::exists(out));
  const Outcome missing =
      run(train_arguments(out, {"--set", "data.task=files", "--set", "data.train.source=/none/a", "--set",
                                "data.train.target=/none/b"}));
  EXPECT_EQ(missing.status, 3);
  EXPECT_THAT(missing.err, HasSubstr("/none/a: No such file or directory"));
}

TEST(Training, SaysWhatIsWrongWithItsFolder) {
  const std::string file = write_text("file", "");
  EXPECT_EQ(run(train_arguments(file)).status, 4);
  const std::string out = fresh_path("run");
  fs::copy(trained_run(), out, fs::copy_options::recursive);
  fs::remove(out + "/train.jsonl");
  fs::create_directory(out + "/train.jsonl");
  const Outcome outcome = run(train_arguments(out, {"--resume"}));
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + out + "/train.jsonl: "));
}

}  // namespace
}  // namespace polyhead::testing
