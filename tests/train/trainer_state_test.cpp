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
  EXPECT_FALSE(TrainerState::parse(text, "file").is_scheduled(3));
  text.erase(text.find(field), field.size());
  EXPECT_TRUE(TrainerState::parse(text, "file").is_scheduled(3));
}

TEST(TrainerStateTest, ReadsWhatItWrote) {
  TrainerState state;
  state.step = 7;
  state.epoch = 2;
  state.batch = 3;
  state.seconds = 0.1;
  state.corpus = "abc";
  EXPECT_EQ(TrainerState::parse(state.dump(), "file").schedule, state.schedule) << "no validation yet";
  state.record(1.0 / 3, true, 2);
  state.schedule = {.best_score = -1.0 / 3, .validations_since_best = 1, .factor = 0.25};
  state.checkpoint(true, 3);
  const TrainerState read = TrainerState::parse(state.dump(), "file");
  EXPECT_EQ(read.dump(), state.dump());
  EXPECT_EQ(read.schedule, state.schedule);
  EXPECT_EQ(read.best.front().score, 1.0 / 3);
}

TEST(TrainerStateTest, NamesTheFileItCannotRead) {
  for (const char* text : {"", "{}", "[1]", "{\"step\": \"x\"}"})
    EXPECT_THAT(testing::error_of([&] { TrainerState::parse(text, "a.h5"); }),
                ::testing::HasSubstr("a.h5: /trainer/state cannot be read: "));
}

TEST(TrainerStateTest, RefusesWhatNoRunWrites) {
  const std::string sound = TrainerState{}.dump();
  const auto error = [&](const std::string& key, const std::string& value) {
    nlohmann::json state = nlohmann::json::parse(sound);
    state[key] = nlohmann::json::parse(value);
    return testing::message_of<FileError>([&] { TrainerState::parse(state.dump(), "a.h5"); });
  };
  EXPECT_EQ(error("step", "3"), "nothing thrown");
  for (const char* key : {"step", "epoch", "batch", "validations_without_best"})
    for (const char* value : {"-1", "1.5", "1e300", "18446744073709551615", "\"1\"", "null", "[1]"})
      EXPECT_EQ(error(key, value)
                    .find(concat("a.h5: /trainer/state cannot be read: ", nlohmann::json::parse(value).dump(),
                                 ", expected an integer of 0 to ")),
                0U)
          << key << " " << value << ": " << error(key, value);
  EXPECT_EQ(error("scheduled", "[-1]").find("a.h5: /trainer/state cannot be read: -1"), 0U);
  EXPECT_EQ(error("best", "[{\"step\": -1, \"score\": 0}]").find("a.h5: /trainer/state cannot be read: -1"),
            0U);
  for (const char* key : {"best", "schedule", "seconds", "corpus"})
    EXPECT_EQ(error(key, "true").find("a.h5: /trainer/state cannot be read: "), 0U) << key;
}

}  // namespace
}  // namespace polyhead::train
