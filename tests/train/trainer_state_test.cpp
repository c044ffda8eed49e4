#include "train/trainer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/check_op.h"
#include "support/message.h"

namespace polyhead::train {
namespace {

TEST(TrainerStateTest, KeepsTheBestInOrder) {
  TrainerState state;
  const double scores[] = {3, 1, 2, 1, 0.5};
  const bool best[] = {true, true, false, false, true};
  for (int i = 0; i < 5; ++i) {
    state.step = 10 * (i + 1);
    EXPECT_EQ(state.record(scores[i], true, 3), best[i]) << i;
  }
  ASSERT_EQ(state.best.size(), 3u);
  EXPECT_EQ(state.best[0].step, 50);
  EXPECT_EQ(state.best[1].step, 20) << "the earlier of two equal scores comes first";
  EXPECT_EQ(state.best[2].step, 40);
  EXPECT_EQ(state.validations_without_best, 0);
  EXPECT_TRUE(state.is_best(20));
  EXPECT_FALSE(state.is_best(30));
}

TEST(TrainerStateTest, HigherIsBetterWhereTheMetricSaysSo) {
  TrainerState state;
  EXPECT_TRUE(state.record(10, false, 1));
  EXPECT_FALSE(state.record(9, false, 1));
  EXPECT_EQ(state.validations_without_best, 1);
  EXPECT_TRUE(state.record(11, false, 1));
}

TEST(TrainerStateTest, KeepsTheNewestScheduledTheBestAndTheLast) {
  TrainerState state;
  for (const std::int64_t step : {10, 20, 30}) {
    state.step = step;
    state.checkpoint(true, 2);
  }
  state.step = 33;
  state.checkpoint(false, 2);
  state.record(1, true, 1);
  state.step = 35;
  const std::vector<std::int64_t> kept{20, 30, 33, 35};
  for (std::int64_t step = 0; step < 50; ++step)
    EXPECT_EQ(state.keeps(step), std::count(kept.begin(), kept.end(), step) == 1) << step;
}

TEST(TrainerStateTest, TakesAllForScheduledWhereTheFileDoesNotTell) {
  std::string text = TrainerState{}.dump();
  const std::string field = "\"scheduled\":[],";
  ASSERT_NE(text.find(field), std::string::npos);
  EXPECT_FALSE(TrainerState::parse(text).is_scheduled(3));
  text.erase(text.find(field), field.size());
  EXPECT_TRUE(TrainerState::parse(text).is_scheduled(3));
}

TEST(TrainerStateTest, ReadsWhatItWrote) {
  TrainerState state;
  state.step = 7;
  state.epoch = 2;
  state.batch = 3;
  state.seconds = 0.1;
  state.corpus = "abc";
  EXPECT_EQ(TrainerState::parse(state.dump()).schedule, state.schedule) << "no validation yet";
  state.record(1.0 / 3, true, 2);
  state.schedule = {.best_score = -1.0 / 3, .validations_since_best = 1, .factor = 0.25};
  state.checkpoint(true, 3);
  const TrainerState read = TrainerState::parse(state.dump());
  EXPECT_EQ(read.dump(), state.dump());
  EXPECT_EQ(read.schedule, state.schedule);
  EXPECT_EQ(read.best.front().score, 1.0 / 3);
}

TEST(TrainerStateTest, NamesTheFileItCannotRead) {
  for (const char* text : {"", "{}", "[1]", "{\"step\": \"x\"}"}) {
    Checkpoint checkpoint;
    checkpoint.path = "a.h5";
    checkpoint.state = text;
    EXPECT_THAT(testing::message_of<FileError>([&] { state_of(checkpoint); }),
                ::testing::StartsWith("a.h5: /trainer/state: "));
  }
}

TEST(TrainerStateTest, RefusesWhatNoRunWrites) {
  TrainerState sound;
  sound.step = 9;
  const auto error = [&](const std::string& pointer, const std::string& value) {
    nlohmann::json state = nlohmann::json::parse(sound.dump());
    state[nlohmann::json::json_pointer(pointer)] = nlohmann::json::parse(value);
    return testing::message_of<FileError>([&] { TrainerState::parse(state.dump()); });
  };
  EXPECT_EQ(error("/step", "30"), "nothing thrown");
  for (const std::string key : {"step", "epoch", "batch", "validations_without_best"})
    for (const std::string value : {"-1", "1.5", "1e300", "18446744073709551615", "\"1\"", "null", "[1]"})
      EXPECT_THAT(error("/" + key, value),
                  ::testing::StartsWith("/trainer/state: " + key + ' ' + nlohmann::json::parse(value).dump() +
                                        ", expected an integer of 0 to "));
  EXPECT_EQ(error("/seconds", "-0.5"), "/trainer/state: seconds -0.5, expected a number of at least 0");
  for (const std::string factor : {"-1e+30", "1.5", "true"})
    EXPECT_EQ(error("/schedule/factor", factor),
              "/trainer/state: factor " + factor + ", expected a number of 0 to 1");
  EXPECT_EQ(error("/scheduled", "[-1]"), "/trainer/state: scheduled -1, expected an integer of 0 to 9");
  EXPECT_EQ(error("/scheduled", "[2, 10]"), "/trainer/state: scheduled 10, expected an integer of 0 to 9");
  EXPECT_EQ(error("/scheduled", "[3, 2]"), "/trainer/state: scheduled [3,2], expected ascending steps");
  EXPECT_EQ(error("/best", R"([{"step": 10, "score": 0}])"),
            "/trainer/state: step of best 10, expected an integer of 0 to 9");
  EXPECT_EQ(error("/best", R"([{"step": 9, "score": -1}])"),
            "/trainer/state: score of best -1, expected a number of at least 0");
  EXPECT_EQ(error("/schedule/validations_since_best", "-1")
                .find("/trainer/state: validations_since_best -1, expected"),
            0U);
  for (const std::string key : {"best", "schedule", "seconds", "corpus", "scheduled"})
    EXPECT_THAT(error("/" + key, "true"), ::testing::StartsWith("/trainer/state: ")) << key;
}

}  // namespace
}  // namespace polyhead::train
