#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>

#include "support/surroundings.h"
#include "tools/program.h"
#include "tools/runs.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif

/// The bytes that a run said it would take.
double expected_bytes(const std::string& err) {
  std::smatch match;
  if (!std::regex_search(err, match, std::regex("memory: about ([0-9]+) MiB"))) return 0;
  return std::stod(match[1]) * (1 << 20);
}

Arguments small_training(const Arguments& settings, const std::string& out = fresh_path("run")) {
  Arguments arguments{"train", tiny_config(), "--out", out, "--threads", "2"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return arguments;
}

TEST(MemoryLimits, TheMemoryThatTrainingSaysIsWhatItTakes) {
  if (sanitized) GTEST_SKIP() << "a sanitizer's own memory grows with every allocation";
  const std::vector<Arguments> all{
      {"training.max_steps=10"},
      {"training.max_steps=3", "model.d_model=256", "model.d_ff=512"},
      {"training.max_steps=3", "model.d_model=256", "model.d_ff=512", "training.ema_decay=0.9",
       "training.accumulate=2", "training.batch_tokens=2048"},
      // What decodes a validation takes more than an update.
      {"training.max_steps=3", "training.validate_every=1", "training.batch_tokens=128",
       "data.valid_size=5000", "training.best_metric=exact_match", "decoding.batch_tokens=60000"},
      {"training.max_steps=10", "training.validate_every=5", "data.valid_size=2000",
       "training.best_metric=bleu"}};
  for (const Arguments& settings : all) {
    const Outcome outcome = run(small_training(settings));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto taken = static_cast<double>(outcome.peak_bytes);
    EXPECT_NEAR(expected_bytes(outcome.err), taken, 0.1 * taken) << ::testing::PrintToString(settings);
  }
}

void expect_refusal(const Outcome& outcome, const std::string& out) {
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_THAT(outcome.err,
              ::testing::ContainsRegex("polyhead: training needs .* MiB that can be had; expected a smaller "
                                       "training.batch_tokens, vocabulary or model"));
  EXPECT_EQ(outcome.err.find("step 1"), std::string::npos) << outcome.err;
  EXPECT_EQ(newest_step(out), -1);
}

TEST(MemoryLimits, AModelLargerThanTheMachineIsRefused) {
  const std::string out = fresh_path("run");
  const Outcome outcome = run(small_training({"model.d_model=8192", "model.d_ff=65536", "model.heads=64",
                                              "model.encoder_layers=64", "model.decoder_layers=64"},
                                             out));
  expect_refusal(outcome, out);
  EXPECT_FALSE(fs::exists(out));
  EXPECT_LT(outcome.peak_bytes, std::int64_t{1} << 30);
}

/// Where 700 MiB can be had.
void expect_limited_training() {
  const std::string out = fresh_path("run");
  EXPECT_EQ(run(small_training({"training.max_steps=2"}, out)).status, 0) << "what is small enough";
  // The weights fit; what a batch takes besides does not.
  const std::string large = fresh_path("run");
  expect_refusal(
      run(small_training({"model.d_model=512", "model.d_ff=8192", "model.heads=4",
                          "training.batch_tokens=60000", "training.lanes=1", "data.train_size=4000"},
                         large)),
      large);
  // Not even the weights.
  const std::string larger = fresh_path("run");
  expect_refusal(run(small_training({"model.d_model=2048", "model.d_ff=8192", "model.heads=4"}, larger)),
                 larger);
}

std::string bytes_of(const std::string& resource, std::int64_t mebibytes) {
  return "--" + resource + "=" + std::to_string(mebibytes << 20);
}

TEST(MemoryLimits, AreKeptWhereTheSystemSetsThem) {
  if (sanitized) GTEST_SKIP() << "a sanitizer needs more address space";
  for (const std::string resource : {"as", "data"}) {
    const Limit limit(bytes_of(resource, 700));
    expect_limited_training();
  }
}

/// That there is a result, or one line at the end that says what there was no room for, and the status for that: of a
/// configuration that needs more than there is, or of a system that has no more.
void expect_a_result_or_a_refusal(const Outcome& outcome, const std::string& context) {
  if (outcome.status == 0) return;
  const std::string refusal = "polyhead: training needs .* MiB that can be had; expected .*\n$";
  const std::string failure =
      "(polyhead: (out of memory: no room for .*; expected .*|cannot start the threads? that .*: .*)|\n?"
      "libgomp: Thread creation failed: .*)\n$";
  EXPECT_THAT(outcome.status, ::testing::AnyOf(1, 2)) << context << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::ContainsRegex(outcome.status == 2 ? refusal : failure)) << context;
}

TEST(MemoryLimits, OfAnySizeEndInAResultOrInALine) {
  if (sanitized) GTEST_SKIP() << "a sanitizer needs more address space";
  const std::vector<std::pair<std::string, Arguments>> commands{
      {"train", small_training({"training.max_steps=2"}, "")},
      {"resume", {"train", "--resume", "--threads", "1", "--set", "training.max_steps=41", "--out", ""}},
      {"translate", {"translate", trained_run(), "--threads", "2"}}};
  for (const std::string resource : {"as", "data"}) {
    // A dynamic linker that has no room has a line and a status of its own.
    const std::int64_t least = resource == "as" ? 100 : 20, most = 900;
    for (const auto& [name, command] : commands) {
      int done = 0;
      for (std::int64_t mebibytes = least; mebibytes <= most; mebibytes += mebibytes / 8) {
        Arguments arguments = command;
        const std::string out = fresh_path("run");
        std::replace(arguments.begin(), arguments.end(), std::string(), out);
        if (name == "resume") fs::copy(trained_run(), out, fs::copy_options::recursive);
        const Outcome outcome = [&] {
          const Limit limit(bytes_of(resource, mebibytes));
          return run(arguments, "a b\n");
        }();
        expect_a_result_or_a_refusal(outcome, name + " in " + std::to_string(mebibytes) + " MiB: ");
        done = outcome.status == 0 ? done + 1 : 0;
      }
      EXPECT_GT(done, 2) << name << ": what is enough once is not with more";
    }
  }
}

TEST(MemoryLimits, AreKeptWhereAControlGroupSetsThem) {
  if (sanitized) GTEST_SKIP() << "a sanitizer needs more memory";
  const auto in_a_group = [](const std::string& limit, const std::string& held, const auto& body) {
    return with_own_mounts([&] {
      const std::string groups = "/sys/fs/cgroup";
      mount_small(groups, 1 << 20);
      fs::create_directory(groups + "/memory");
      for (const std::string file : {"/memory.max", "/memory/memory.limit_in_bytes"})
        std::ofstream(groups + file) << limit << '\n';
      for (const std::string file : {"/memory.stat", "/memory/memory.stat"})
        std::ofstream(groups + file) << "anon " << held << "\ntotal_rss " << held << '\n';
      body();
    });
  };
  const std::string mebibytes_700 = std::to_string(700 << 20),
                    gibibytes_4 = std::to_string(std::int64_t{4} << 30);
  if (!in_a_group(mebibytes_700, "0", expect_limited_training))
    GTEST_SKIP() << "no mounts may be made: groups are read in tests of their own";
  in_a_group(gibibytes_4, std::to_string((std::int64_t{4} << 30) - (700 << 20)), expect_limited_training);
}

TEST(FileLimits, AFileThatMayNotGetSoLongIsNamed) {
  const std::string out = fresh_path("run");
  const auto start = [&] {
    const Limit limit("--fsize=20000");
    return std::make_unique<Process>(
        Arguments{"train", tiny_config(), "--out", out, "--set", "training.max_steps=20"});
  };
  const Outcome outcome = start()->wait();
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err,
              HasSubstr("polyhead: " + checkpoint(out, 10) + ": cannot write: File too large\n"));
}

TEST(FileLimits, NoDescriptorIsLostByCheckpointsThatAreWrittenOrFail) {
  const Arguments settings{"training.checkpoint_every=1", "training.validate_every=2", "training.keep_last=1",
                           "checkpoint.on_error=continue"};
  const auto train_with_few = [&](const std::string& out, const Arguments& more) {
    Arguments arguments = small_training(settings, out);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Limit limit("--nofile=24");
    return run(arguments);
  };
  EXPECT_EQ(train_with_few(fresh_path("run"), {}).status, 0);
  const std::string out = fresh_path("run");
  fs::create_directories(out + "/checkpoints");
  fs::permissions(out + "/checkpoints", fs::perms::owner_read | fs::perms::owner_exec);
  with_permissions([&] {
    const Outcome outcome = train_with_few(out, {"--resume"});
    EXPECT_EQ(outcome.status, 4) << outcome.err;
    const std::string denied = ": cannot write: Permission denied";
    EXPECT_THAT(outcome.err, HasSubstr(checkpoint(out, 39) + denied + "; training goes on"));
    EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + checkpoint(out, 40) + denied + "\n"));
  });
}

/// The most threads that a process has while it runs.
int most_threads(Process& process) {
  int most = 0;
  const std::string tasks = "/proc/" + std::to_string(process.id()) + "/task";
  wait_for(process, [&] {
    std::error_code ended;
    fs::directory_iterator entries(tasks, ended);
    int count = 0;
    for (fs::directory_iterator end; !ended && entries != end; entries.increment(ended)) ++count;
    most = std::max(most, count);
    return false;
  });
  return most;
}

Arguments command(const std::string& name) {
  if (name == "train")
    return {"train", tiny_config(), "--out", fresh_path("run"), "--set", "training.max_steps=20"};
  if (name == "bench") return {"bench", "train", tiny_config(), "--steps", "2", "--repetitions", "1"};
  if (name == "evaluate") return {"evaluate", trained_run(), "--metrics", "loss,bleu"};
  if (name == "importance") return {"heads", "importance", trained_run(), "--limit", "10"};
  return {name, trained_run()};
}

TEST(ThreadLimits, ThereAreNeverMoreThanAskedFor) {
  if (sanitized) GTEST_SKIP() << "a sanitizer has threads of its own";
  for (const std::string name : {"train", "bench", "evaluate", "translate", "heads", "importance"})
    for (const auto& [variable, flag] : {std::pair<int, int>{5, 1}, {1, 0}, {2, 0}}) {
      const Environment environment({{"OMP_NUM_THREADS", std::to_string(variable)}});
      Arguments arguments = command(name);
      if (flag > 0) arguments.insert(arguments.end(), {"--threads", std::to_string(flag)});
      Process process(arguments, "a b\n");
      // Besides them, training has one that waits for signals.
      EXPECT_LE(most_threads(process), (flag > 0 ? flag : variable) + (name == "train" ? 1 : 0)) << name;
      const Outcome outcome = process.wait();
      EXPECT_EQ(outcome.status, 0) << name << outcome.err;
    }
}

TEST(ThreadLimits, NumbersOfTheEnvironmentThatAreNoneOrTooManyDoNoHarm) {
  for (const std::string number : {"", "0", "-1", "many", "100000", "99999999999999999999", "2,1"}) {
    const Environment environment({{"OMP_NUM_THREADS", number}});
    const Outcome outcome = run({"translate", trained_run()}, "a b\n");
    EXPECT_EQ(outcome.status, 0) << number << outcome.err;
    EXPECT_EQ(count_lines(outcome.out), 1) << number;
  }
}

}  // namespace
}  // namespace polyhead::testing
