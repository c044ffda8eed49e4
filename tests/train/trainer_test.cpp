#include "polyhead/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "polyhead/config/yaml.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/run_folder.h"
#include "support/check_op.h"

namespace polyhead::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* base = R"(
name: test
data: {task: reverse, train_size: 300, valid_size: 20, test_size: 10}
tokenizer: {kind: word}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 2, d_ff: 32, tie_embeddings: all}
training: {batch_tokens: 128, lanes: 4, max_steps: 12, learning_rate: 0.01, warmup_steps: 5, checkpoint_every: 4, validate_every: 4}
)";

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    std::string pattern = (fs::temp_directory_path() / "polyhead_trainer_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~TrainerTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& run) const { return folder_ + "/" + run; }

  TrainResult run(
      const std::string& name, std::vector<std::string> settings, bool resume = false,
      std::function<bool()> stop = [] { return false; }) {
    const auto config = config::parse<Config>(base, "base", settings);
    return train(config,
                 {.folder = path(name), .threads = 2, .resume = resume, .stop_requested = std::move(stop)},
                 observer_);
  }
  Checkpoint newest(const std::string& name) const {
    return read_checkpoint(list_checkpoints(RunFolder(path(name)).checkpoints()).back().path);
  }
  std::vector<std::int64_t> steps_kept(const std::string& name) const {
    std::vector<std::int64_t> steps;
    for (const CheckpointFile& f : list_checkpoints(RunFolder(path(name)).checkpoints()))
      steps.push_back(f.step);
    return steps;
  }

  struct Recorder : Observer {
    void message(const std::string& text) override { messages.push_back(text); }
    void validated(std::int64_t step, const Figures& figures, bool best) override {
      validations.push_back({step, figures});
      if (best) best_step = step;
    }
    std::vector<std::string> messages;
    std::vector<std::pair<std::int64_t, Figures>> validations;
    std::int64_t best_step = 0;
  };

  std::string folder_;
  Recorder observer_;
};

using Arrays = std::vector<NamedArray>;

void expect_same_bits(const Arrays& a, const Arrays& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].path, b[i].path);
    EXPECT_TRUE(std::equal(a[i].values.begin(), a[i].values.end(), b[i].values.begin(), b[i].values.end()))
        << a[i].path;
  }
}

void expect_same_training(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.step, b.step);
  expect_same_bits(a.parameters, b.parameters);
  expect_same_bits(a.ema, b.ema);
  expect_same_bits(a.first_moment, b.first_moment);
  expect_same_bits(a.second_moment, b.second_moment);
}

TEST_F(TrainerTest, ResumesToTheBitWithAverageAndPlateau) {
  const std::vector<std::string> settings{"training.ema_decay=0.9",      "training.schedule=plateau",
                                          "training.plateau_patience=1", "training.label_smoothing=0.1",
                                          "model.dropout=0.2",           "training.validate_every=2"};
  run("straight", settings);
  int updates = 0;
  EXPECT_EQ(run("parts", settings, false, [&] { return ++updates == 7; }).reason, StopReason::signal);
  EXPECT_EQ(newest("parts").step, 7);
  EXPECT_EQ(run("parts", settings, true).reason, StopReason::max_steps);
  expect_same_training(newest("parts"), newest("straight"));
  EXPECT_FALSE(newest("straight").ema.empty());
}

TEST_F(TrainerTest, AccumulatingTwiceIsTwiceTheLanesAndTheBatch) {
  run("accumulate", {"training.accumulate=2"});
  run("lanes", {"training.lanes=8", "training.batch_tokens=256"});
  expect_same_training(newest("accumulate"), newest("lanes"));
}

TEST_F(TrainerTest, ThreadsBeyondShardsChangeNothing) {
  run("two", {});
  const auto config = config::parse<Config>(base, "base");
  train(config, {.folder = path("many"), .threads = 9}, observer_);
  expect_same_training(newest("two"), newest("many"));
}

TEST_F(TrainerTest, MoreLanesThanSentencesLeaveSomeIdle) {
  run("idle", {"training.lanes=64", "training.batch_tokens=20"});
  EXPECT_EQ(newest("idle").step, 12);
}

TEST_F(TrainerTest, KeepsTheNewestAndTheBest) {
  // With this rate the loss soon rises, so the best is not the newest.
  run("kept", {"training.max_steps=16", "training.checkpoint_every=2", "training.validate_every=2",
               "training.keep_last=2", "training.learning_rate=0.5", "training.warmup_steps=3"});
  std::vector<std::int64_t> expected{observer_.best_step, 14, 16};
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(steps_kept("kept"), expected);
  EXPECT_EQ(resolve_checkpoint(path("kept")),
            checkpoint_path(RunFolder(path("kept")).checkpoints(), observer_.best_step));
}

TEST_F(TrainerTest, StopsWhenPatienceIsOver) {
  const TrainResult result =
      run("patient", {"training.max_steps=1000", "training.validate_every=2", "training.patience=3",
                      "training.learning_rate=0", "training.best_metric=perplexity"});
  EXPECT_EQ(result.reason, StopReason::patience);
  EXPECT_EQ(result.step, 8);  // the first validation is the best, three more are not better
}

TEST_F(TrainerTest, StopsAfterEpochsAndMinutes) {
  EXPECT_EQ(run("epochs", {"training.max_steps=null", "training.max_epochs=1"}).reason,
            StopReason::max_epochs);
  EXPECT_EQ(run("minutes", {"training.max_steps=null", "training.max_minutes=0.001"}).reason,
            StopReason::max_minutes);
}

TEST_F(TrainerTest, ValidatesTextMetrics) {
  run("metrics", {"training.best_metric=chrf", "training.validation_metrics=[bleu, exact_match]"});
  ASSERT_EQ(observer_.validations.size(), 3u);
  const Figures& figures = observer_.validations.back().second;
  for (const Metric m : {Metric::loss, Metric::perplexity, Metric::token_accuracy, Metric::bleu, Metric::chrf,
                         Metric::exact_match})
    EXPECT_TRUE(figures.contains(m)) << config::Codec<Metric>::text(m);
  EXPECT_DOUBLE_EQ(figures.at(Metric::perplexity), std::exp(figures.at(Metric::loss)));
}

TEST_F(TrainerTest, FineTunesFromACheckpoint) {
  run("first", {});
  run("second", {"training.initial_checkpoint=" + path("first"), "training.max_steps=0"});
  const LoadedModel first = load_model(path("first"));
  const Checkpoint second = newest("second");
  for (const NamedArray& array : second.parameters) {
    const nn::ParameterStore& store = first.model->parameters();
    const auto values = store.value(store.at(array.path)).span<float>();
    EXPECT_TRUE(std::equal(values.begin(), values.end(), array.values.begin())) << array.path;
  }
  EXPECT_THAT(testing::error_of([&] {
                run("other", {"training.initial_checkpoint=" + path("first"), "model.d_model=32"});
              }),
              HasSubstr("of shape"));
}

TEST_F(TrainerTest, RefusesOtherDataWhenResuming) {
  run("data", {"training.max_steps=4"});
  EXPECT_THAT(testing::error_of([&] { run("data", {"data.train_size=299"}, true); }),
              HasSubstr("data.train_size (300 -> 299)"));
  EXPECT_THAT(testing::error_of([&] {
                run("data", {"model.dropout=0.3", "seed=2"}, true);
              }),
              ::testing::AllOf(HasSubstr("seed (1 -> 2)"), HasSubstr("model.dropout (0.1 -> 0.3)")));
}

TEST_F(TrainerTest, LogHasALineForEveryUpdateAndValidation) {
  run("log", {});
  std::ifstream in(RunFolder(path("log")).log());
  int lines = 0, validations = 0;
  for (std::string line; std::getline(in, line); ++lines)
    validations += line.find("validation") != std::string::npos ? 1 : 0;
  EXPECT_EQ(lines, 15);
  EXPECT_EQ(validations, 3);
}

TEST(RunFolderTest, CutsTheLogBehindAnUpdate) {
  std::string pattern = (fs::temp_directory_path() / "polyhead_folder_XXXXXX").string();
  const RunFolder folder(mkdtemp(pattern.data()));
  std::ofstream(folder.log())
      << "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"validation\":{}}\n{\"step\":3}\n{\"ste";
  folder.cut_log(2);
  std::ifstream in(folder.log());
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"validation\":{}}\n");
  EXPECT_FALSE(folder.best_step().has_value());
  folder.set_best_step(7);
  EXPECT_EQ(folder.best_step(), 7);
  fs::remove_all(folder.path());
}

}  // namespace
}  // namespace polyhead::train
