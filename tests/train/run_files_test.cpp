#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "polyhead/config/yaml.h"
#include "polyhead/train/average.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/run_folder.h"
#include "polyhead/train/trainer.h"
#include "support/check_op.h"

namespace polyhead::train {
namespace {

namespace fs = std::filesystem;

/// What the process has open.
std::ptrdiff_t open_files() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

class RunFilesTest : public ::testing::Test {
 protected:
  RunFilesTest() {
    std::string pattern = (fs::temp_directory_path() / "polyhead_files_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~RunFilesTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& run) const { return folder_ + "/" + run; }
  void run(const std::string& name, const std::vector<std::string>& settings, bool resume = false) {
    const auto config = config::parse<Config>(R"(
data: {task: reverse, train_size: 100, valid_size: 10, test_size: 10}
tokenizer: {kind: word}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 2, d_ff: 32}
training: {batch_tokens: 128, max_steps: 6, warmup_steps: 2, checkpoint_every: 2, validate_every: 3}
)",
                                              "base", settings);
    Observer observer;
    train(config, {.folder = path(name), .threads = 2, .resume = resume}, observer);
  }
  void expect_nothing_left() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }

  std::string folder_;
};

TEST_F(RunFilesTest, AreClosedHoweverTrainingEnds) {
  run("whole", {});  // what libraries open once and keep
  const std::ptrdiff_t before = open_files();
  run("again", {});
  EXPECT_EQ(open_files(), before);

  fs::create_directories(path("folder/train.jsonl"));
  std::ofstream(path("file")) << "text";
  const std::vector<std::function<void()>> failing{
      [&] { run("whole", {}); },                       // a run already
      [&] { run("whole", {"model.d_ff=64"}, true); },  // other settings
      [&] { run("file", {}); },                        // no folder
      [&] { run("folder", {}, true); },                // in place of the log
      [&] {
        run("data", {"data.task=files", "data.train.source=/none/a", "data.train.target=/none/b"});
      },
      [&] {
        run("rate", {"training.learning_rate=1e30", "training.schedule=constant", "training.warmup_steps=0"});
      },
      [&] { run("from", {"training.initial_checkpoint=" + path("none")}); },
      [&] {
        run("from", {"training.initial_checkpoint=" + path("whole"), "model.d_model=32"});
      },
  };
  for (std::size_t i = 0; i < failing.size(); ++i) {
    EXPECT_NE(testing::error_of(failing[i]), "") << i;
    EXPECT_EQ(open_files(), before) << i;
    expect_nothing_left();
  }
}

TEST_F(RunFilesTest, OfDamagedRunsAreClosedToo) {
  run("run", {});
  const std::string newest = list_checkpoints(RunFolder(path("run")).checkpoints()).back().path;
  fs::resize_file(newest, fs::file_size(newest) / 2);
  const std::ptrdiff_t before = open_files();
  EXPECT_NE(testing::error_of([&] { read_checkpoint(newest); }), "");
  EXPECT_NE(testing::error_of([&] { last_checkpoints(path("run"), 1); }), "");
  EXPECT_EQ(open_files(), before);
  load_model(path("run"));
  run("run", {"training.max_steps=8"}, true);
  EXPECT_EQ(open_files(), before);
  expect_nothing_left();
}

}  // namespace
}  // namespace polyhead::train
