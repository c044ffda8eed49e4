#include "polyhead/train/average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"

namespace polyhead::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Values = std::array<float, 2>;

class AverageTest : public ::testing::Test {
 protected:
  AverageTest() {
    std::string name = (fs::temp_directory_path() / "polyhead-average-XXXXXX").string();
    run_ = ::mkdtemp(name.data());
    fs::create_directories(run_ + "/checkpoints");
  }
  ~AverageTest() override { fs::remove_all(run_); }

  std::string write(std::int64_t step, const Values& weight, const Values* ema = nullptr,
                    const std::string& vocabulary = "v", const std::string& best = "[]") const {
    Checkpoint c;
    c.parameters = {{"a/weight", {1, 2}, weight}};
    if (ema) c.ema = {{"a/weight", {1, 2}, *ema}};
    c.first_moment = {{"a/weight", {1, 2}, weight}};
    c.second_moment = {{"a/weight", {1, 2}, squares_}};
    c.step = step;
    c.config = "name: x\n";
    c.vocabulary = vocabulary;
    c.state =
        concat(R"({"step": )", step,
               R"(, "epoch": 0, "batch": 0, "seconds": 0, "validations_without_best": 0, "corpus": "",)"
               R"( "schedule": {"factor": 1, "best_score": null, "validations_since_best": 0}, "best": )",
               best, "}");
    const std::string path = checkpoint_path(run_ + "/checkpoints", step);
    write_checkpoint(path, c);
    return path;
  }

  static constexpr Values squares_{1, 4};
  std::string run_;
};

TEST_F(AverageTest, IsTheMeanOfEveryParameter) {
  const std::vector<std::string> paths{write(1, {1, 10}), write(2, {2, -20}), write(4, {6, 1})};
  const Checkpoint mean = average_checkpoints(paths);
  ASSERT_EQ(mean.parameters.size(), 1U);
  EXPECT_EQ(mean.parameters[0].path, "a/weight");
  EXPECT_EQ(mean.parameters[0].shape, (Shape{1, 2}));
  EXPECT_THAT(mean.parameters[0].values, ElementsAre(3.F, -3.F));
  EXPECT_TRUE(mean.first_moment.empty() && mean.second_moment.empty() && mean.ema.empty());
  EXPECT_EQ(mean.step, 4);
  EXPECT_EQ(mean.vocabulary, "v");
  EXPECT_EQ(mean.config, "name: x\n");
  EXPECT_EQ(nlohmann::json::parse(mean.state).at("averaged"), (nlohmann::json{1, 2, 4}));
}

TEST_F(AverageTest, SumsInDouble) {
  // In float, 2^24 + 1 is 2^24.
  const std::vector<std::string> paths{write(1, {16777216, 0}), write(2, {1, 0}), write(3, {1, 0}),
                                       write(4, {-16777216, 0})};
  EXPECT_THAT(average_checkpoints(paths).parameters[0].values, ElementsAre(0.5F, 0.F));
}

TEST_F(AverageTest, TakesTheMovingAverageWhereThereIsOne) {
  const Values first{4, 4}, second{8, 0};
  const std::vector<std::string> paths{write(1, {0, 0}, &first), write(2, {0, 0}, &second)};
  EXPECT_THAT(average_checkpoints(paths).parameters[0].values, ElementsAre(6.F, 2.F));
}

TEST_F(AverageTest, CanBeWrittenAndRead) {
  const std::vector<std::string> paths{write(1, {1, 2}), write(2, {3, 4})};
  write_checkpoint(run_ + "/average.h5", average_checkpoints(paths));
  EXPECT_THAT(read_checkpoint(run_ + "/average.h5").parameters[0].values, ElementsAre(2.F, 3.F));
}

TEST_F(AverageTest, RefusesOtherVocabularies) {
  const std::vector<std::string> paths{write(1, {1, 2}), write(2, {3, 4}, nullptr, "w")};
  EXPECT_THAT([&] { average_checkpoints(paths); },
              ThrowsMessage<FileError>(paths[1] + ": has another vocabulary than " + paths[0] +
                                       ", cannot average them"));
}

TEST_F(AverageTest, ChoosesTheNewest) {
  write(1, {1, 1});
  const std::string second = write(2, {1, 1}), third = write(10, {1, 1});
  EXPECT_THAT(last_checkpoints(run_, 2), ElementsAre(second, third));
  EXPECT_THAT([&] { last_checkpoints(run_, 4); },
              ThrowsMessage<Error>(
                  run_ + " has 3 checkpoints, cannot average the last 4 (it keeps training.keep_last "
                         "of those made every training.checkpoint_every)"));
}

TEST_F(AverageTest, ChoosesTheNewestOfThoseThatWereScheduled) {
  write(1, {1, 1});
  const std::string second = write(2, {1, 1});
  write(3, {1, 1});
  const std::string fourth = write(4, {1, 1});
  write(5, {1, 1}, nullptr, "v", R"([{"step": 1, "score": 1.0}], "scheduled": [2, 4])");
  EXPECT_THAT(last_checkpoints(run_, 2), ElementsAre(second, fourth));
  EXPECT_THAT([&] { last_checkpoints(run_, 3); },
              ThrowsMessage<Error>(HasSubstr("has 2 checkpoints, cannot average the last 3")));
}

TEST_F(AverageTest, DoesNotPassOverDamagedFiles) {
  write(1, {1, 1});
  const std::string second = write(2, {1, 1});
  fs::resize_file(second, fs::file_size(second) - 1);
  EXPECT_THAT([&] { last_checkpoints(run_, 1); },
              ThrowsMessage<FileError>(HasSubstr(second + ": is truncated")));
}

TEST_F(AverageTest, ChoosesTheBest) {
  const std::string first = write(1, {1, 1});
  write(2, {1, 1});
  const std::string third =
      write(3, {1, 1}, nullptr, "v",
            R"([{"step": 3, "score": 1.0}, {"step": 1, "score": 2.0}, {"step": 2, "score": 3.0}])");
  EXPECT_THAT(best_checkpoints(run_, 2), ElementsAre(first, third));
  EXPECT_THAT([&] { best_checkpoints(run_, 4); },
              ThrowsMessage<Error>(HasSubstr("has kept 3 best checkpoints")));
}

TEST_F(AverageTest, NeedsACheckpoint) {
  EXPECT_THAT([&] { best_checkpoints(run_, 1); }, ThrowsMessage<FileError>(HasSubstr("no checkpoint in")));
}

}  // namespace
}  // namespace polyhead::train
