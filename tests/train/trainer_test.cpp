#include "polyhead/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "polyhead/config/yaml.h"
#include "polyhead/core/folder_lock.h"
#include "polyhead/train/average.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/run_folder.h"
#include "support/check_op.h"
#include "train/trainer_state.h"

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
    void saved(const std::string&) override { ++saves; }
    std::vector<std::string> messages;
    int saves = 0;
    std::vector<std::pair<std::int64_t, Figures>> validations;
    std::int64_t best_step = 0;
  };

  std::string file(const std::string& run, std::int64_t step) const {
    return checkpoint_path(RunFolder(path(run)).checkpoints(), step);
  }
  void tear(const std::string& run, std::int64_t step) const {
    fs::resize_file(file(run, step), fs::file_size(file(run, step)) - 1);
  }

  std::string folder_;
  Recorder observer_;
};

const char* const never_validate = "training.validate_every=1000";

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
  int updates = -1;
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
  EXPECT_EQ(open_checkpoint(path("kept")).path,
            checkpoint_path(RunFolder(path("kept")).checkpoints(), observer_.best_step));
}

TEST_F(TrainerTest, KeepsSeveralBest) {
  run("best", {"training.max_steps=16", "training.checkpoint_every=1000", "training.validate_every=2",
               "training.keep_best=3", "training.learning_rate=0.5", "training.warmup_steps=3"});
  std::vector<std::pair<double, std::int64_t>> scores;
  for (const auto& [step, figures] : observer_.validations)
    scores.push_back({figures.at(Metric::loss), step});
  std::sort(scores.begin(), scores.end());
  std::vector<std::int64_t> expected{scores[0].second, scores[1].second, scores[2].second, 16};
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(steps_kept("best"), expected);
  EXPECT_THAT(best_checkpoints(path("best"), 3), ::testing::Contains(file("best", scores[2].second)));
}

TEST_F(TrainerTest, SaysHowMuchMemoryItWillTake) {
  run("memory", {});
  EXPECT_THAT(observer_.messages,
              ::testing::Contains(::testing::MatchesRegex(
                  "memory: about [0-9]+ MiB at the peak, of [0-9]+ MiB that can be had")));
}

TEST_F(TrainerTest, NeitherCountsNorLeavesTornCheckpoints) {
  run("torn", {never_validate});
  tear("torn", 12);
  run("torn", {never_validate, "training.keep_last=1", "training.max_steps=10"}, true);
  EXPECT_EQ(steps_kept("torn"), (std::vector<std::int64_t>{8, 10}));
  EXPECT_EQ(newest("torn").step, 10);
  EXPECT_TRUE(fs::exists(file("torn", 12) + ".damaged"));
  EXPECT_THAT(observer_.messages, ::testing::Contains("set aside as " + file("torn", 12) + ".damaged"));
}

TEST_F(TrainerTest, StartsAgainOnlyWhereThereIsNoCheckpoint) {
  run("all_torn", {never_validate, "training.max_steps=8"});
  tear("all_torn", 4);
  tear("all_torn", 8);
  const auto resume = [&] { run("all_torn", {never_validate, "training.max_steps=2"}, true); };
  EXPECT_THAT(
      testing::error_of(resume),
      ::testing::AllOf(::testing::StartsWith(path("all_torn") + ": no checkpoint can be resumed from: " +
                                             file("all_torn", 8) + ": is truncated"),
                       ::testing::EndsWith("; to train from the start, move " + path("all_torn") +
                                           "/checkpoints/step-*.h5 away")));
  EXPECT_THAT(
      observer_.messages,
      ::testing::Contains(::testing::StartsWith("skipped: " + file("all_torn", 4) + ": is truncated")));
  EXPECT_EQ(steps_kept("all_torn"), (std::vector<std::int64_t>{4, 8})) << "where they were";
  for (const std::int64_t step : {4, 8}) fs::rename(file("all_torn", step), path(std::to_string(step)));
  resume();
  EXPECT_EQ(steps_kept("all_torn"), std::vector<std::int64_t>{2});
}

TEST_F(TrainerTest, TheBestIsWhatTheNewestReadableCheckpointSays) {
  run("resolved", {});
  tear("resolved", 12);
  const auto state = state_of(read_checkpoint(file("resolved", 8)));
  const OpenedCheckpoint opened = open_checkpoint(path("resolved"));
  EXPECT_EQ(opened.path, file("resolved", state.best.front().step));
  EXPECT_THAT(opened.damaged, ::testing::StartsWith(file("resolved", 12) + ": is truncated"));
}

TEST_F(TrainerTest, TheNextBestIsTakenWhereTheBestCannotBeRead) {
  // The newest has no score.
  run("bests", {"training.max_steps=17", "training.checkpoint_every=1000", "training.validate_every=2",
                "training.keep_best=2", "training.learning_rate=0.5", "training.warmup_steps=3"});
  const auto best = state_of(newest("bests")).best;
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(open_checkpoint(path("bests")).damaged, "");
  tear("bests", best[0].step);
  const OpenedCheckpoint second = open_checkpoint(path("bests"));
  EXPECT_EQ(second.checkpoint.step, best[1].step);
  EXPECT_THAT(second.damaged,
              ::testing::AllOf(::testing::StartsWith(file("bests", best[0].step) + ": is truncated"),
                               ::testing::EndsWith("; taking " + file("bests", best[1].step) + " instead")));
  tear("bests", best[1].step);
  const OpenedCheckpoint last = open_checkpoint(path("bests"));
  EXPECT_EQ(last.path, file("bests", 17));
  EXPECT_THAT(last.damaged, ::testing::HasSubstr(file("bests", best[1].step) + ": is truncated"));
  tear("bests", 17);
  EXPECT_THROW(open_checkpoint(path("bests")), FileError);
}

TEST_F(TrainerTest, KeepsTheSameWhetherInterruptedOrNot) {
  const std::vector<std::string> settings{never_validate, "training.keep_last=2"};
  run("straight", settings);
  int updates = -1;
  run("parts", settings, false, [&] { return ++updates == 7; });
  EXPECT_EQ(steps_kept("parts"), (std::vector<std::int64_t>{4, 7}));
  run("parts", settings, true, [&] { return ++updates == 10; });
  EXPECT_EQ(steps_kept("parts"), (std::vector<std::int64_t>{4, 8, 9}));
  EXPECT_EQ(last_checkpoints(path("parts"), 2),
            (std::vector<std::string>{file("parts", 4), file("parts", 8)}));
  run("parts", settings, true);
  EXPECT_EQ(steps_kept("parts"), (std::vector<std::int64_t>{8, 12}));
  EXPECT_EQ(steps_kept("straight"), steps_kept("parts"));
}

TEST_F(TrainerTest, ResumesWithinAnEpochThatEndsInAValidation) {
  const std::vector<std::string> settings{"data.train_size=60", "training.validate_every=epoch",
                                          "training.checkpoint_every=epoch"};
  run("straight", settings);
  const auto validations = observer_.validations;
  ASSERT_GE(validations.size(), 2U);
  const std::int64_t stop = validations[0].first + 1;
  observer_.validations.clear();
  int updates = -1;
  run("parts", settings, false, [&] { return ++updates == stop; });
  run("parts", settings, true);
  EXPECT_EQ(observer_.validations, validations);
  expect_same_training(newest("parts"), newest("straight"));
}

TEST_F(TrainerTest, ValidatesAndDecodesWithTheAverage) {
  run("ema", {"training.ema_decay=0.9"});
  const Checkpoint checkpoint = newest("ema");
  const LoadedModel loaded = load_model(file("ema", 12));
  const nn::ParameterStore& store = loaded.model->parameters();
  for (const NamedArray& array : checkpoint.ema) {
    const auto values = store.value(store.at(array.path)).span<float>();
    EXPECT_TRUE(std::equal(values.begin(), values.end(), array.values.begin())) << array.path;
  }
  const auto text = data::load_text(loaded.config.data, data::Split::valid, loaded.config.seed);
  const auto corpus = loss_corpus(loaded.config, text, loaded.pipeline);
  std::vector<Worker> workers(2);
  const auto loss = [&] { return loss_figures(*loaded.model, corpus, 128, workers).at(Metric::loss); };
  ASSERT_EQ(observer_.validations.back().first, 12);
  EXPECT_EQ(loss(), observer_.validations.back().second.at(Metric::loss));
  fill_slab(store, checkpoint.parameters, store.slab(), "");
  EXPECT_NE(loss(), observer_.validations.back().second.at(Metric::loss));
  for (const nn::Parameter& p : store.parameters())
    *store.value(p).as<float>() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(testing::error_of(loss), HasSubstr("expected a finite number"));
}

TEST_F(TrainerTest, NoCheckpointHoldsWhatIsNotFinite) {
  for (const std::string rate : {"1e30", "1e38", "1e39", "1e60"}) {
    const std::string name = "rate_" + rate;
    const std::string error = testing::error_of([&] {
      run(name, {never_validate, "training.learning_rate=" + rate, "training.schedule=constant",
                 "training.warmup_steps=0", "training.checkpoint_every=1", "training.keep_last=1"});
    });
    EXPECT_THAT(error, HasSubstr("training failed at step "));
    EXPECT_THAT(error, HasSubstr("(learning rate 1e+" + rate.substr(2) + ", gradient norm "));
    EXPECT_THAT(error, HasSubstr("parameter "));
    for (const std::int64_t step : steps_kept(name)) {
      const Checkpoint checkpoint = read_checkpoint(file(name, step));
      for (const auto& arrays : {checkpoint.parameters, checkpoint.first_moment, checkpoint.second_moment})
        for (const NamedArray& array : arrays)
          EXPECT_TRUE(std::all_of(array.values.begin(), array.values.end(), [](float x) {
            return std::isfinite(x);
          })) << array.path;
    }
  }
}

TEST_F(TrainerTest, IsAloneInItsFolder) {
  run("locked", {"training.max_steps=4"});
  {
    const FolderLock lock(path("locked"), "trained");
    EXPECT_EQ(testing::error_of([&] { run("locked", {}, true); }),
              path("locked") + ": is being trained by another process");
  }
  EXPECT_EQ(run("locked", {}, true).step, 12);
}

TEST_F(TrainerTest, RemovesWhatAKilledProcessLeft) {
  run("killed", {"training.max_steps=4"});
  const std::string left = file("killed", 8) + ".tmp-1", other = path("killed") + "/notes.tmp-1";
  for (const std::string& name : {left, path("killed") + "/config.yaml.tmp-1", other})
    std::ofstream(name) << "x";
  run("killed", {}, true);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(path("killed") + "/config.yaml.tmp-1"));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(TrainerTest, ResumingARunThatEndedByTimeChangesNothing) {
  const std::vector<std::string> settings{"training.max_steps=null", "training.max_minutes=0.001",
                                          "training.checkpoint_every=1"};
  const std::int64_t step = run("minutes", settings).step;
  observer_.saves = 0;
  EXPECT_EQ(run("minutes", settings, true).step, step);
  EXPECT_EQ(observer_.saves, 0);
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
  EXPECT_THAT(testing::error_of([&] {
                run("tokens", {"training.initial_checkpoint=" + path("first"), "tokenizer.kind=char",
                               "data.lowercase=true"});
              }),
              ::testing::AllOf(HasSubstr("training.initial_checkpoint: " + path("first")),
                               HasSubstr("tokenizer.kind (word -> char)"),
                               HasSubstr("data.lowercase (false -> true)")));
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
  for (std::string line; std::getline(in, line); ++lines) {
    EXPECT_THAT(line, HasSubstr("\"token_accuracy\":"));
    validations += line.find("validation") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(lines, 15);
  EXPECT_EQ(validations, 3);
}

std::string problems_of(const char* text, const std::vector<std::string>& settings = {}) {
  return testing::error_of([&] { config::parse<Config>(text, "base", settings); });
}

TEST(ConfigTest, SettingsMustFitEachOther) {
  EXPECT_THAT(problems_of(base, {"tokenizer.shared=false"}),
              HasSubstr("model.tie_embeddings: all needs one vocabulary for both languages"));
  EXPECT_THAT(problems_of("training: {max_steps: 1, patience: 2, schedule: plateau}"),
              ::testing::AllOf(HasSubstr("training.patience: 2 needs data.valid"),
                               HasSubstr("training.schedule: plateau needs data.valid")));
  EXPECT_THAT(problems_of(base, {"training.lanes=1025"}),
              HasSubstr("training.lanes: 1025, expected an integer of 1 to 1024, or auto"));
  EXPECT_THAT(
      problems_of(base, {"training.lanes=1024", "training.accumulate=5"}),
      HasSubstr(
          "training.accumulate: 5 times 1024 lanes are 5120 shards of an update, expected at most 4096"));
}

TEST(MovingAverageTest, ForgetsTheFirstWeightsSoon) {
  EXPECT_DOUBLE_EQ(average_decay(0.999, 1), 2.0 / 11);
  EXPECT_DOUBLE_EQ(average_decay(0.999, 90), 0.91);
  EXPECT_DOUBLE_EQ(average_decay(0.5, 90), 0.5);
}

TEST(RunFolderTest, CutsTheLogBehindAnUpdate) {
  std::string pattern = (fs::temp_directory_path() / "polyhead_folder_XXXXXX").string();
  const RunFolder folder(mkdtemp(pattern.data()));
  std::ofstream(folder.log())
      << "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"validation\":{}}\n{\"step\":\"1\"}\n"
         "{\"step\":null}\n{\"step\":1.5}\n{}\n[1]\n{\"step\":3}\n{\"ste";
  folder.cut_log(2);
  std::ifstream in(folder.log());
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"validation\":{}}\n");
  fs::remove_all(folder.path());
}

}  // namespace
}  // namespace polyhead::train
