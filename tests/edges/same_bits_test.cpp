#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "polyhead/train/checkpoint.h"
#include "tools/program.h"

extern char** environ;

/// What a run's results depend on: its configuration, and nothing around it.
namespace polyhead::testing {
namespace {

using ::testing::HasSubstr;

/// All values of the checkpoint at a step, as bytes.
std::string bits_at(const std::string& run_folder, std::int64_t step) {
  const train::Checkpoint checkpoint =
      train::read_checkpoint(train::checkpoint_path(run_folder + "/checkpoints", step));
  std::string bits;
  for (const auto* arrays : {&checkpoint.parameters, &checkpoint.first_moment, &checkpoint.second_moment})
    for (const train::NamedArray& array : *arrays)
      bits.append(reinterpret_cast<const char*>(array.values.data()), array.values.size_bytes());
  return bits;
}

/// The losses of all updates, as the log has them.
std::vector<double> logged_losses(const std::string& run_folder) {
  std::vector<double> losses;
  for (const nlohmann::json& line : read_json_lines(run_folder + "/train.jsonl"))
    if (line.contains("loss")) losses.push_back(line.at("loss"));
  return losses;
}

Arguments training(const std::string& out, const Arguments& more) {
  Arguments arguments{"train", tiny_config(), "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The program with a terminal for all streams: its exit status, and what it showed.
Outcome run_in_terminal(const Arguments& arguments) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return {-1, "", "no terminal"};
  const std::string name = ::ptsname(terminal);
  std::vector<std::string> words{POLYHEAD_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {0, 1, 2})
    posix_spawn_file_actions_addopen(&actions, stream, name.c_str(), O_RDWR, 0);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, POLYHEAD_PROGRAM, &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  Outcome outcome{-1, "", "cannot start"};
  if (error == 0) {
    char block[4096];
    // Ends with an error when the last process has closed its side.
    for (ssize_t n = 0; (n = ::read(terminal, block, sizeof block)) > 0;)
      outcome.out.append(block, static_cast<std::size_t>(n));
    int status = 0;
    ::waitpid(process, &status, 0);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  ::close(terminal);
  return outcome;
}

TEST(SameBits, WhateverIsAroundARun) {
  const std::string expected = bits_at(trained_run(), 40);
  const std::vector<double> losses = logged_losses(trained_run());
  for (const Arguments& around : std::vector<Arguments>{
           {"--threads", "1"},
           {"--threads", "3"},
           {"--threads", "2", "--set", "training.validate_every=3"},
           {"--threads", "2", "--set", "training.validate_every=1000", "--set",
            "training.checkpoint_every=1"},
           {"--threads", "1", "--set", "training.validation_metrics=[bleu, exact_match]"},
           {"--threads", "2", "--set", "training.diagnostics_every=5", "--set", "training.keep_last=1"}}) {
    const std::string out = fresh_path("run");
    const Outcome outcome = run(training(out, around));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(bits_at(out, 40) == expected) << ::testing::PrintToString(around);
    EXPECT_EQ(logged_losses(out), losses) << ::testing::PrintToString(around);
  }
}

TEST(SameBits, WithATerminal) {
  const std::string out = fresh_path("run");
  const Outcome outcome = run_in_terminal(training(out, {"--threads", "2"}));
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\r\x1B[K")) << "the line of progress was replaced, as in a terminal";
  EXPECT_TRUE(bits_at(out, 40) == bits_at(trained_run(), 40));
  EXPECT_EQ(logged_losses(out), logged_losses(trained_run()));
}

TEST(SameBits, AfterAnyNumberOfResumes) {
  const std::string out = fresh_path("run");
  int threads = 0;
  for (const int stop : {1, 2, 9, 10, 11, 26, 27, 39, 40}) {
    Arguments more{"--threads", std::to_string(threads++ % 3 + 1),
                   "--set",     "training.max_steps=" + std::to_string(stop),
                   "--set",     "training.validate_every=" + std::to_string(stop)};
    if (stop > 1) more.emplace_back("--resume");
    const Outcome outcome = run(training(out, more));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  EXPECT_TRUE(bits_at(out, 40) == bits_at(trained_run(), 40));
  EXPECT_EQ(logged_losses(out), logged_losses(trained_run()));
}

TEST(SameBits, OfTranslationsAndScores) {
  const std::string text = "a b c\nd e f g\n\nh h h h h h\nb\nq a c d e\n", path = write_text("text", text);
  const auto all = [&](const std::string& threads) {
    return run({"translate", trained_run(), "--scores", "--threads", threads}, text).out +
           run({"translate", trained_run(), "--scores", "--threads", threads, "--set",
                "decoding.method=sampling"},
               text)
               .out +
           run({"score", trained_run(), "--source", path, "--target", path, "--threads", threads}).out +
           run({"evaluate", trained_run(), "--split", "test", "--json", "--threads", threads}).out;
  };
  const std::string one = all("1");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 3 * 6 + 1);
  EXPECT_EQ(all("2"), one);
  EXPECT_EQ(all("3"), one);
}

}  // namespace
}  // namespace polyhead::testing
