#include "tools/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "polyhead/train/checkpoint.h"
#include "tools/program.h"

namespace polyhead::testing {

using nlohmann::json;

std::string checkpoint(const std::string& run, std::int64_t step) {
  return train::checkpoint_path(run + "/checkpoints", step);
}

std::int64_t newest_step(const std::string& run) {
  const auto files = train::list_checkpoints(run + "/checkpoints");
  return files.empty() ? -1 : files.back().step;
}

void expect_equal_arrays(const std::string& first_path, const std::string& second_path) {
  const train::Checkpoint first = train::read_checkpoint(first_path),
                          second = train::read_checkpoint(second_path);
  for (const auto arrays : {&train::Checkpoint::parameters, &train::Checkpoint::first_moment,
                            &train::Checkpoint::second_moment}) {
    ASSERT_EQ((first.*arrays).size(), (second.*arrays).size());
    for (std::size_t i = 0; i < (first.*arrays).size(); ++i) {
      const train::NamedArray &a = (first.*arrays)[i], &b = (second.*arrays)[i];
      EXPECT_EQ(a.path, b.path);
      EXPECT_TRUE(std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end())) << a.path;
    }
  }
}

void expect_equal(const std::string& first_path, const std::string& second_path) {
  expect_equal_arrays(first_path, second_path);
  json a = json::parse(train::read_checkpoint(first_path).state),
       b = json::parse(train::read_checkpoint(second_path).state);
  a.erase("seconds"), b.erase("seconds");
  EXPECT_EQ(a, b);
}

std::vector<double> losses(const std::string& run) {
  std::vector<double> result;
  for (const json& entry : read_json_lines(run + "/train.jsonl")) {
    if (!entry.contains("loss")) continue;
    result.push_back(entry.at("loss"));
    EXPECT_EQ(entry.at("step"), result.size());
  }
  return result;
}

}  // namespace polyhead::testing
