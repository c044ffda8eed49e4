#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "faults/faults.h"
#include "polyhead/train/checkpoint.h"
#include "support/surroundings.h"
#include "tools/runs.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t last_step = 12;

Arguments training(const std::string& out, const Arguments& more = {}) {
  Arguments arguments{"train", tiny_config(), "--out", out, "--threads", "2"};
  for (const char* setting : {"training.max_steps=12", "training.checkpoint_every=4",
                              "training.validate_every=6", "training.keep_last=2"})
    arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// A run to its end, and the calls that it made.
struct Straight {
  std::string folder = fresh_path("run");
  FaultyOutcome outcome = run_with({}, folder, training(folder));
};

const Straight& straight() {
  static const Straight run;
  return run;
}

/// That the run goes on to the same end as if nothing had happened, and keeps the same files.
void expect_same_end(const std::string& out) {
  const Outcome resumed = run(training(out, {"--resume"}));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  expect_equal(checkpoint(out, last_step), checkpoint(straight().folder, last_step));
  EXPECT_EQ(losses(out), losses(straight().folder));
  EXPECT_EQ(files_in(out), files_in(straight().folder));
}

/// The step of the last checkpoint that a run said it had saved; 0: none.
std::int64_t saved_step(const std::string& err) {
  const std::size_t at = err.rfind("saved ");
  return at == std::string::npos ? 0 : std::stoll(err.substr(err.find("/step-", at) + 6, 8));
}

void expect_whole_checkpoints(const std::string& out, const std::string& err) {
  for (const train::CheckpointFile& file : train::list_checkpoints(out + "/checkpoints"))
    EXPECT_NO_THROW(train::read_checkpoint(file.path)) << file.path;
  EXPECT_GE(newest_step(out), saved_step(err) == 0 ? -1 : saved_step(err));
}

TEST(TrainingFaults, OfTheDiskAreErrorsAndNothingIsLost) {
  ASSERT_EQ(straight().outcome.status, 0) << straight().outcome.err;
  const std::vector<Call>& calls = straight().outcome.calls;
  ASSERT_GT(calls.size(), 50U);
  const std::vector<std::string> errors{"ENOSPC", "EIO", "full", "EDQUOT"};
  std::size_t next = 0;
  for (const std::int64_t number : numbers_of(calls, 2))
    for (std::size_t i = 0; i < (thorough() ? errors.size() : 1); ++i) {
      const std::string& error = errors[next++ % errors.size()];
      const Call& call = calls[static_cast<std::size_t>(number - 1)];
      SCOPED_TRACE(std::to_string(number) + ' ' + call.name + ' ' + call.path + ' ' + error);
      const std::string out = fresh_path("run");
      const FaultyOutcome outcome = run_with({number, error}, out, training(out));
      ASSERT_EQ(outcome.calls.at(static_cast<std::size_t>(number - 1)).name, call.name);
      expect_file_error(outcome, outcome.calls[static_cast<std::size_t>(number - 1)], error);
      expect_no_temporaries(out);
      expect_whole_checkpoints(out, outcome.err);
      expect_same_end(out);
      fs::remove_all(out);
    }
}

TEST(TrainingFaults, HalfAWriteIsFollowedByTheOtherHalf) {
  const std::vector<Call>& calls = straight().outcome.calls;
  for (const std::int64_t number : numbers_of(calls, 3)) {
    if (calls[static_cast<std::size_t>(number - 1)].name != "write") continue;
    const std::string out = fresh_path("run");
    const FaultyOutcome outcome = run_with({number, "short"}, out, training(out));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(outcome.calls.size(), calls.size());
    expect_same_end(out);
  }
}

TEST(TrainingFaults, ThePreviousCheckpointIsThereToUse) {
  const std::vector<Call>& calls = straight().outcome.calls;
  std::int64_t number = static_cast<std::int64_t>(calls.size());
  while (calls[static_cast<std::size_t>(number - 1)].name != "rename") --number;  // of the last checkpoint
  const std::string out = fresh_path("run");
  const FaultyOutcome outcome = run_with({number, "full"}, out, training(out));
  EXPECT_EQ(outcome.status, 4);
  const std::int64_t step = newest_step(out);
  ASSERT_GT(step, 0);
  ASSERT_LT(step, last_step);
  const Outcome inspected = run({"inspect", checkpoint(out, step)});
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_EQ(run({"evaluate", out}).status, 0);
}

TEST(TrainingFaults, TrainingGoesOnWithoutACheckpointWhereItMay) {
  const Arguments go_on{"--set", "checkpoint.on_error=continue"};
  const std::vector<Call>& calls = straight().outcome.calls;
  const auto is_of = [](const Call& call, const std::string& file) {
    return call.path.find(file) != std::string::npos;
  };
  std::size_t tried = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    // What the checkpoint after 8 updates takes, and a few lines of the log.
    if (!is_of(calls[i], "step-00000008") && !(calls[i].name == "write" && is_of(calls[i], "train.jsonl")))
      continue;
    if (is_of(calls[i], "train.jsonl") && !thorough() && i % 5 != 0) continue;
    const std::string out = fresh_path("run");
    const FaultyOutcome outcome =
        run_with({static_cast<std::int64_t>(i + 1), "ENOSPC"}, out, training(out, go_on));
    SCOPED_TRACE(calls[i].name + ' ' + calls[i].path);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("No space left on device; training goes on"));
    EXPECT_THAT(outcome.left_open, ::testing::IsEmpty());
    expect_no_temporaries(out);
    expect_equal_arrays(checkpoint(out, last_step), checkpoint(straight().folder, last_step));
    ++tried;
  }
  EXPECT_GT(tried, 6U);
}

TEST(TrainingFaults, TheLastCheckpointOfAllMustBeWritten) {
  const std::vector<Call>& calls = straight().outcome.calls;
  const auto first = std::find_if(calls.begin(), calls.end(), [](const Call& call) {
    return call.path.find("step-00000004") != std::string::npos && call.name == "write";
  });
  const std::string out = fresh_path("run");
  const FaultyOutcome outcome = run_with({first - calls.begin() + 1, "full"}, out,
                                         training(out, {"--set", "checkpoint.on_error=continue"}));
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err,
              HasSubstr("step-00000004.h5: cannot write: No space left on device; training goes on"));
  EXPECT_THAT(outcome.err,
              HasSubstr("polyhead: " + checkpoint(out, last_step) + ": cannot write: No space left"));
  // Once of the log, though none of its lines could be written any more.
  const std::size_t said = outcome.err.find("train.jsonl: cannot");
  EXPECT_NE(said, std::string::npos);
  EXPECT_EQ(outcome.err.find("train.jsonl: cannot", said + 1), std::string::npos) << outcome.err;
  expect_no_temporaries(out);
  expect_same_end(out);
}

TEST(TrainingFaults, AFolderThatMayNotBeWrittenToIsNamed) {
  for (const std::string error : {"EACCES", "EROFS"}) {
    const std::string out = fresh_path("run");
    const FaultyOutcome outcome = run_with({1, error}, out, training(out));
    expect_file_error(outcome, outcome.calls.at(0), error);
    EXPECT_TRUE(files_in(out).empty());
  }
}

/// A run that has not come to its end.
std::string begun_run() {
  std::string out = fresh_path("run");
  EXPECT_EQ(run(training(out, {"--set", "training.max_steps=4"})).status, 0);
  return out;
}

TEST(TrainingFaults, WhatMayNotBeWrittenIsNamed) {
  const std::string empty = fresh_path("run"), begun = begun_run();
  fs::create_directory(empty);
  for (const std::string& path : {empty, begun, begun + "/checkpoints"})
    with_permissions([&] {
      fs::permissions(path, fs::perms::owner_write, fs::perm_options::remove);
      const Outcome outcome = run(training(path == empty ? empty : begun, {"--resume"}));
      fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
      EXPECT_EQ(outcome.status, 4) << path << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + path));
      EXPECT_THAT(outcome.err, HasSubstr("Permission denied\n"));
    });
  EXPECT_TRUE(files_in(empty).empty());
  expect_same_end(begun);
}

/// A run of two checkpoints, the older of which is the best.
std::string run_past_its_best() {
  std::string out = fresh_path("run");
  EXPECT_EQ(
      run(training(out, {"--set", "training.validate_every=4", "--set", "training.max_steps=4"})).status, 0);
  EXPECT_EQ(run(training(out, {"--resume", "--set", "training.validate_every=100", "--set",
                               "training.max_steps=8"}))
                .status,
            0);
  EXPECT_EQ(files_in(out + "/checkpoints").size(), 2U);
  return out;
}

TEST(TrainingFaults, WhatCannotBeReadNowIsNamedAndStays) {
  const std::string out = run_past_its_best();
  const std::vector<std::string> files = files_in(out);
  const std::vector<std::string> errors{"EIO", "EACCES", "EMFILE", "ENOMEM"};
  const std::string input = "a b\n";
  std::size_t tried = 0;
  for (const Arguments& arguments :
       {training(out, {"--resume"}), Arguments{"translate", out}, {"evaluate", out}, {"heads", out}}) {
    // Of a copy, as training goes on.
    const std::string copy = fresh_path("run");
    fs::copy(out, copy, fs::copy_options::recursive);
    Arguments of_copy = arguments;
    std::replace(of_copy.begin(), of_copy.end(), out, copy);
    const FaultyOutcome whole = run_with({}, copy, of_copy, input);
    ASSERT_EQ(whole.status, 0) << whole.err;
    for (std::size_t i = 0; i < whole.calls.size(); ++i) {
      const Call& call = whole.calls[i];
      if (call.name == "open" ? !call.path.ends_with(".h5") : call.name != "read") continue;
      const std::string& error = errors[tried++ % errors.size()];
      SCOPED_TRACE(arguments.front() + ' ' + call.name + ' ' + call.path + ' ' + error);
      const FaultyOutcome outcome =
          run_with({static_cast<std::int64_t>(i + 1), error}, out, arguments, input);
      EXPECT_EQ(outcome.status, 4) << outcome.err;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, ::testing::EndsWith("polyhead: " + out + call.path.substr(copy.size()) +
                                                   ": cannot read: " + reason(error) + "\n"));
      EXPECT_EQ(files_in(out), files);
    }
  }
  EXPECT_GE(tried, 14U) << "the newest of each, and the best of those that are not trained";
}

TEST(TrainingFaults, ACheckpointOfAnotherVersionOrTooLargeStays) {
  const std::string out = begun_run(), whole = read_text(checkpoint(out, 4)), newest = checkpoint(out, 8);
  std::string foreign = whole;
  foreign.replace(foreign.find("version 1"), 9, "version 2");
  std::ofstream(newest) << foreign;
  for (const Arguments& arguments : {training(out, {"--resume"}), Arguments{"translate", out}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 4);
    EXPECT_EQ(outcome.err, "polyhead: " + newest + ": has format version 2, expected 1\n");
  }
  std::error_code no_sparse_files;
  fs::resize_file(newest, std::uintmax_t{1} << 42, no_sparse_files);
  if (!no_sparse_files) {
    const Outcome outcome = run(training(out, {"--resume"}));
    EXPECT_EQ(outcome.status, 4);
    EXPECT_THAT(outcome.err, HasSubstr("of memory that can be had\n"));
  }
  EXPECT_EQ(newest_step(out), 8);
  fs::remove(newest);
  expect_same_end(out);
}

TEST(TrainingFaults, ARunOfDamagedCheckpointsAloneIsNotStartedAgain) {
  const std::string out = begun_run(), file = checkpoint(out, 4), whole = read_text(file);
  fs::resize_file(file, whole.size() - 1);
  const Outcome outcome = run(training(out, {"--resume"}));
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + out + ": no checkpoint can be resumed from: " + file +
                                     ": is truncated: "));
  EXPECT_THAT(outcome.err, ::testing::EndsWith("; to train from the start, move " + out +
                                               "/checkpoints/step-*.h5 away\n"));
  fs::rename(file, fresh_path("away"));
  expect_same_end(out);
}

TEST(TrainingFaults, AReadOnlyFileSystemIsNamed) {
  const std::string out = begun_run();
  const bool allowed = with_own_mounts([&] {
    make_read_only(out);
    const Outcome outcome = run(training(out, {"--resume"}));
    EXPECT_EQ(outcome.status, 4);
    EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + out + "/"));
    EXPECT_THAT(outcome.err, HasSubstr("Read-only file system\n"));
    EXPECT_EQ(run({"evaluate", out}).status, 0) << "which writes nothing";
  });
  if (!allowed) GTEST_SKIP() << "no mounts may be made: read-only file systems are errors of single calls";
  expect_same_end(out);
}

TEST(TrainingFaults, AFileSystemThatIsTooSmallKeepsWhatFits) {
  const std::string out = fresh_path("run");
  fs::create_directory(out);
  const auto size = static_cast<std::size_t>(fs::file_size(checkpoint(straight().folder, last_step)));
  const bool allowed = with_own_mounts([&] {
    mount_small(out, size * 3 / 2 + (64 << 10));
    const Outcome outcome = run(training(out));
    EXPECT_EQ(outcome.status, 4);
    EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + checkpoint(out, 6) + ": cannot write: No space left"));
    expect_no_temporaries(out);
    expect_whole_checkpoints(out, outcome.err);
    EXPECT_EQ(newest_step(out), 4);
    mount_small(out, size * 16, MS_REMOUNT);
    expect_same_end(out);
  });
  if (!allowed) GTEST_SKIP() << "no mounts may be made: full file systems are errors of single calls";
}

TEST(TrainingFaults, AFolderThatIsRemovedWhileTrainingIsNamed) {
  const std::string out = fresh_path("run");
  Process process(training(out, {"--set", "training.max_steps=1000000"}));
  ASSERT_TRUE(wait_for(process, [&] { return newest_step(out) > 0; })) << process.wait().err;
  std::error_code ignored;
  while (fs::exists(out)) fs::remove_all(out, ignored);  // while files are made in it
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + out));
  EXPECT_THAT(outcome.err, ::testing::AnyOf(HasSubstr(": was moved or removed while it was trained\n"),
                                            HasSubstr("No such file or directory\n")))
      << "of which the second is said while the folder is still there";
}

TEST(TrainingFaults, AFolderThatAnotherProcessTrainsInsteadIsItsOwn) {
  for (const Arguments& more :
       {Arguments{}, Arguments{"--set", "checkpoint.on_error=continue", "--set", "training.keep_last=1"}}) {
    const std::string out = fresh_path("run"), moved = fresh_path("moved");
    Arguments long_training = training(out, more);
    long_training.insert(long_training.end(), {"--set", "training.max_steps=1000000", "--set", "seed=7"});
    Process process(long_training);
    ASSERT_TRUE(wait_for(process, [&] { return newest_step(out) > 0; })) << process.wait().err;
    process.signal(SIGSTOP);
    fs::rename(out, moved);
    ASSERT_EQ(run(training(out)).status, 0);
    const std::vector<std::string> files = files_in(out);
    process.signal(SIGCONT);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 4);
    EXPECT_THAT(outcome.err,
                ::testing::EndsWith("polyhead: " + out + ": was moved or replaced while it was trained\n"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("training goes on")));
    EXPECT_EQ(files_in(out), files);
    expect_same_end(out);
    expect_whole_checkpoints(moved, "");
  }
}

TEST(TrainingFaults, AFolderInPlaceOfAFileIsNamed) {
  for (const std::string file : {"config.yaml", "train.jsonl"}) {
    const std::string out = fresh_path("run");
    fs::create_directories(out + "/" + file);
    const Outcome outcome = run(training(out, {"--resume"}));
    EXPECT_EQ(outcome.status, 4) << file;
    EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + out + "/" + file)) << file;
    expect_no_temporaries(out);
  }
  const std::string file = write_text("file", "text");
  for (const std::string& out : {file, file + "/run"}) {
    const Outcome outcome = run(training(out));
    EXPECT_EQ(outcome.status, 4);
    EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + file));
  }
  EXPECT_EQ(read_text(file), "text");
}

TEST(TrainingFaults, ClosedStreamsDoNotBecomeFiles) {
  const std::string out = fresh_path("run");
  Process process(training(out), "", Process::closed);
  EXPECT_EQ(process.wait().status, 0);
  expect_same_end(out);
}

void expect_survival(const std::string& out, const Outcome& killed) {
  ASSERT_EQ(killed.status, 128 + SIGKILL) << killed.err;
  expect_whole_checkpoints(out, killed.err);
  const std::int64_t newest = newest_step(out);
  if (newest >= 0) {
    const Outcome resumed = run(training(out, {"--resume"}));
    EXPECT_THAT(resumed.err, HasSubstr("resuming from " + checkpoint(out, newest)));
  }
  expect_same_end(out);
}

TEST(TrainingKills, InTheMiddleOfAnyCallLoseNothingSaved) {
  const std::vector<Call>& calls = straight().outcome.calls;
  for (const std::int64_t number : numbers_of(calls, 4))
    for (const std::string what : {"kill", "torn"}) {
      const Call& call = calls[static_cast<std::size_t>(number - 1)];
      if (what == "torn" && call.name != "write") continue;
      SCOPED_TRACE(std::to_string(number) + ' ' + call.name + ' ' + call.path + ' ' + what);
      const std::string out = fresh_path("run");
      expect_survival(out, run_with({number, what}, out, training(out)));
      fs::remove_all(out);
    }
}

TEST(TrainingKills, AgainAndAgainLoseNothingSaved) {
  const auto size = static_cast<std::int64_t>(straight().outcome.calls.size());
  std::mt19937 random(1);
  for (int round = 0; round < (thorough() ? 25 : 1); ++round) {
    const std::string out = fresh_path("run");
    for (int i = 0; i < 4; ++i) {
      const auto call = static_cast<std::int64_t>(random() % static_cast<unsigned>(size)) + 1;
      const FaultyOutcome outcome = run_with({call, "kill"}, out, training(out, {"--resume"}));
      expect_whole_checkpoints(out, outcome.err);
      if (outcome.status == 0) break;  // it was at its end before that call
      ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    }
    expect_same_end(out);
    fs::remove_all(out);
  }
}

TEST(TrainingKills, AtAnyTimeLoseNothingSaved) {
  using std::chrono::steady_clock;
  const steady_clock::time_point begin = steady_clock::now();
  ASSERT_EQ(run(training(fresh_path("run"))).status, 0);
  const std::chrono::duration<double> whole = steady_clock::now() - begin;
  std::mt19937 random(2);
  for (int kills = 0; kills < (thorough() ? 60 : 3); ++kills) {
    const std::string out = fresh_path("run");
    Process process(training(out));
    std::this_thread::sleep_for(whole * std::uniform_real_distribution<double>(0, 1)(random));
    process.signal(SIGKILL);
    const Outcome outcome = process.wait();
    if (outcome.status == 128 + SIGKILL) count_kill();
    expect_whole_checkpoints(out, outcome.err);
    expect_same_end(out);
    fs::remove_all(out);
  }
}

}  // namespace
}  // namespace polyhead::testing
