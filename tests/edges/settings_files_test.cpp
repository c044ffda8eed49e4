#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/surroundings.h"
#include "tools/program.h"

/// Configuration files and settings that nobody should write.
namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // which takes terabytes of address space
#else
constexpr bool sanitized = false;
#endif

/// Processes started while this lives get no more than 100 MB of memory of their own.
class LittleMemory {
 public:
  LittleMemory() {
    ::getrlimit(RLIMIT_DATA, &before_);
    const rlimit little{100'000'000, before_.rlim_max};
    if (!sanitized) ::setrlimit(RLIMIT_DATA, &little);
  }
  ~LittleMemory() { ::setrlimit(RLIMIT_DATA, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

std::string repeated(const std::string& text, std::size_t size) {
  std::string result;
  while (result.size() + text.size() <= size) result += text;
  return result;
}

/// `key` with a number behind it, again and again.
std::string numbered(const std::string& key, std::size_t size) {
  std::string result;
  for (int i = 0; result.size() + key.size() + 12 <= size; ++i) result += key + std::to_string(i) + ": 1\n";
  return result;
}

struct HostileFile {
  std::string path, message;
};

std::vector<HostileFile> hostile_files() {
  constexpr std::size_t most = 262144;
  const std::string large = write_text("large.yaml", "seed: 1\n#");
  fs::resize_file(large, 100'000'000);
  const std::string no_mapping = ", expected a mapping of settings", too_large = "larger than 262144 bytes";
  std::vector<HostileFile> files{
      {"/none/run.yaml", "/none/run.yaml: no such file"},
      {scratch_folder(), ": a folder, expected a YAML configuration"},
      {large, too_large},
      {"/dev/zero", too_large},
      {"/dev/null", "empty" + no_mapping},
      {POLYHEAD_PROGRAM, too_large},
  };
  const std::vector<std::pair<std::string, std::string>> texts{
      {"", ": empty" + no_mapping},
      {"\n# nothing\n\n", ": empty" + no_mapping},
      {"- a\n- b\n", ":1: a list" + no_mapping},
      {"just text", ":1: \"just text\"" + no_mapping},
      {"seed: 1\nmodel:\n\td_model: 8\n",
       ":3: not valid YAML: illegal map value (the line begins with a tab, expected spaces)\n"},
      {"seed: 1\nname: gr\xFC\xDF\n", ":2: not UTF-8 text"},
      {"\xFF\xFEs\0e\0e\0d\0:\0", ":1: not UTF-8 text"},
      {std::string("seed: 1\nname: a\0b\n", 18), ":2: a NUL byte"},
      {"seed: 1\nname: \"\x1B[2J\"\n", ":2: control character 27"},
      {"\x7F"
       "ELF\x02\x01\x01",
       ":1: "},
      {"PK\x03\x04", ":1: control character 3"},
      {"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n", ":1: a: anchors and aliases"},
      {"a: &a {b: *a}\n", ":1: a: anchors and aliases"},
      {"seed: *nowhere\n", ":1: not valid YAML"},
      {"model: {<<: {d_model: 8}}\n", ":1: model: merge keys"},
      {"seed: !!python/object/apply:os.system [\"true\"]\n", ":1: seed: tags are not supported"},
      {"seed: 1\n---\nseed: 2\n", ":2: a second document"},
      {"%YAML 9.9\n---\nseed: 1\n", ":1: not valid YAML"},
      {"seed: \"1\n", ":1: "},
      {"seed: 1\nseed: 2\n", ":2: seed: given twice"},
      {"x: " + repeated("[", most - 8), ":1: nested more than 32 levels deep"},
      {repeated("{a: ", most), ":1: nested more than 32 levels deep"},
      {repeated("- ", most), ":1: nested more than 32 levels deep"},
      {repeated("? ", most), ":1: nested more than 32 levels deep"},
      {"model: {d_model: [" + repeated("a,", most - 30) + "]}",
       ":1: model.d_model: a list, expected an integer"},
      {"model: {d_model: " + repeated("9", most - 30) + "}", ":1: model.d_model: "},
      {repeated("k", most - 4) + ": 1", ":1: "},
      {numbered("k", most), ":1: k0: unknown key\n"},
      {repeated("seed: 1\n", most), ":2: seed: given twice"},
      {repeated("a:\n", most), ":2: a: given twice"},
      {"model:\n  d_model: |\n" + repeated("   a\n", most - 30), ":2: model.d_model: "},
      {repeated("#\n", most), ": empty"},
      {repeated("!", most), ":1: "},
      {repeated("&a ", most), ":1: "},
      {"model: {heads: {encoder: [" + repeated("1,", most - 60) + "1], decoder: [1], cross: [1]}}", "model."},
  };
  for (const auto& [text, message] : texts) files.push_back({write_text("run.yaml", text), message});
  files.push_back({write_text("secret.yaml", "seed: 1\n"), ": cannot be opened (Permission denied)"});
  ::chmod(files.back().path.c_str(), 0);
  return files;
}

/// Status 2, one clear line for each thing that is wrong, and nothing else.
void expect_refused(const Arguments& command, const std::string& message) {
  const Outcome outcome = [&] {
    const LittleMemory little;
    return run(command);
  }();
  std::string shown = ::testing::PrintToString(command).substr(0, 300);
  EXPECT_EQ(outcome.status, 2) << shown << outcome.err.substr(0, 1000);
  EXPECT_THAT(outcome.out, IsEmpty()) << shown;
  EXPECT_THAT(outcome.err.substr(0, 20000), HasSubstr(message)) << shown;
  std::istringstream lines(outcome.err);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_THAT(line, StartsWith("polyhead: ")) << shown;
    EXPECT_LT(line.size(), 2000U) << shown;
  }
  EXPECT_GE(count, 1) << shown;
  EXPECT_LE(count, 101) << shown;
}

TEST(SettingsFiles, ThatAreNoneAreRefusedByEveryCommand) {
  with_permissions([] {
    for (const HostileFile& file : hostile_files()) {
      expect_refused({"config", file.path}, file.message);
      const std::string out = fresh_path("run");
      expect_refused({"train", file.path, "--out", out}, file.message);
      EXPECT_FALSE(fs::exists(out));
    }
  });
}

TEST(SettingsFiles, ThatAreNoExperimentsOrNoBasesOfOneAreRefused) {
  with_permissions([] {
    for (const HostileFile& file : hostile_files()) {
      const std::string out = fresh_path("ablation");
      if (file.message.find("model.") == std::string::npos)
        expect_refused({"ablate", file.path, "--out", out}, file.message.substr(0, 12));
      const std::string experiment =
          write_text("experiment.yaml", "base: \"" + file.path + "\"\nseeds: [1]\n");
      expect_refused({"ablate", experiment, "--out", out}, file.message);
      EXPECT_FALSE(fs::exists(out));
    }
  });
}

TEST(SettingsFiles, APipeIsReadAndNotWaitedForForEver) {
  const std::string pipe = fresh_path("pipe.yaml");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refused({"config", pipe}, pipe + ": empty, expected a mapping of settings");
  Process reader({"config", pipe});
  std::ofstream(pipe) << "seed: 77\ntraining: {max_steps: 1}\n";
  const Outcome outcome = reader.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("seed: 77\n"));
}

TEST(SettingsFiles, ADiskThatFailsIsNoWrongUsage) {
  const std::string out = fresh_path("run"), file = out + "/config.yaml";
  fs::create_directory(out);
  fs::create_symlink("/proc/self/mem", file);  // nothing is at its beginning
  for (const Arguments& command : {Arguments{"train", "--out", out, "--resume"}, {"config", file}}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 4);
    EXPECT_EQ(outcome.err, "polyhead: " + file + ": cannot be read: Input/output error\n");
  }
}

TEST(SettingsFiles, FilesThatTheyNameAreRegular) {
  const std::string pipe = fresh_path("pipe"), text = write_text("text", "a b\n"), out = fresh_path("run");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string files = "data={task: files, train: {source: " + text + ", target: " + text + "}}";
  const std::string tokenizer = "polyhead: tokenizer model \"" + pipe + "\": not a regular file\n";
  struct Use {
    std::string setting;
    int status;
    std::string message;
  };
  const std::string experiment = write_text("e.yaml", "seeds: [1]\nevaluation: {splits: [train]}\n");
  for (const Use& use : std::vector<Use>{
           {"data.train.source=" + pipe, 3, "polyhead: data file " + pipe + ": not a regular file\n"},
           {"data.train.target=" + pipe, 3, "polyhead: data file " + pipe + ": not a regular file\n"},
           {"tokenizer={kind: sentencepiece, model: " + pipe + "}", 4, tokenizer},
           {"training.initial_checkpoint=" + pipe, 4, "polyhead: " + pipe + ": not a regular file\n"}})
    for (const Arguments& command : {Arguments{"train"}, {"ablate", experiment}}) {
      Arguments arguments = command;
      arguments.insert(arguments.end(), {"--out", out, "--set", files, "--set", use.setting});
      const Outcome outcome = run(arguments);
      EXPECT_EQ(outcome.status, use.status) << use.setting;
      EXPECT_EQ(outcome.err, use.message);
    }
  EXPECT_FALSE(fs::exists(out));
}

TEST(SettingsFiles, SettingsOfTheCommandLineAreRefusedAsWell) {
  for (const auto& [setting, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "--set: empty, expected a value"},
           {"=", "--set =: expected key.path=value"},
           {"seed", "--set seed: expected key.path=value"},
           {"seed=", "--set seed=: seed: nothing, expected an integer"},
           {"seed=.nan", "--set seed=.nan: seed: "},
           {"training.learning_rate=1e400", "training.learning_rate: "},
           {"training.learning_rate=-.inf", "training.learning_rate: "},
           {"training.learning_rate=-1", "training.learning_rate: -1, expected at least 0"},
           {"model.d_model=1073741824", "model.d_model: 1073741824, expected between 1 and 8192"},
           {"seed=&a 1", "anchors and aliases are not supported"},
           {"seed=[*a]", "not valid YAML"},
           {"seed=!!int 1", "tags are not supported"},
           {"model={<<: {}}", "merge keys"},
           {"model={d_model: 8, d_model: 8}", "given twice"},
           {"name=a\tb: c", "--set name=a\\tb: c: "},
           {"name=\xC3\x28", "not UTF-8 text"},
           {"name=\x1B[2J", "control character 27"},
           {"seed=1\nmodel: {}", "--set seed=1\\nmodel: {}: "},
           {"seed=" + repeated("[", 100000), "nested more than 32 levels deep"},
           {repeated("a.", 100000) + "b=1", "expected key.path=value"},
           {repeated("k", 100000) + "=1", ": unknown key\n"},
           {"seed=" + repeated("1", 100000), "seed: "}})
    expect_refused({"config", "--set", setting}, message);
}

TEST(SettingsFiles, ANameDoesNotLeadElsewhere) {
  for (const std::string name : {"..", ".", "../up", "/tmp/x", "a/b"}) {
    const std::string message =
        "name: \"" + name + "\", expected a name that a folder in runs/ can have, or --out";
    expect_refused({"train", "--set", "name=" + name}, message);
    expect_refused({"ablate", write_text("experiment.yaml", "name: \"" + name + "\"\nseeds: [1]\n")},
                   message);
  }
}

TEST(SettingsFiles, AGridIsNotMultipliedOut) {
  std::string grid = "grid:\n";
  for (int axis = 0; axis < 40; ++axis) {
    grid += "  key_" + std::to_string(axis) + ": [0";
    for (int value = 1; value < 100; ++value) grid += ", " + std::to_string(value);
    grid += "]\n";
  }
  expect_refused({"ablate", write_text("grid.yaml", grid), "--out", fresh_path("ablation")},
                 " cells, expected at most ");
}

}  // namespace
}  // namespace polyhead::testing
