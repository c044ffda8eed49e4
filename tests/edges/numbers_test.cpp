#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "polyhead/train/checkpoint.h"
#include "tools/program.h"

/// Checkpoints of values that nothing can be computed with.
namespace polyhead::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A copy of the trained run's last checkpoint in which every value of the parameters whose path `matches` is what
/// `value` says of its index.
template <class Matches, class Value>
std::string altered_checkpoint(const Matches& matches, const Value& value,
                               const std::string& path = fresh_path("altered.h5")) {
  train::Checkpoint checkpoint =
      train::read_checkpoint(train::checkpoint_path(trained_run() + "/checkpoints", 40));
  std::vector<std::vector<float>> values;
  values.reserve(checkpoint.parameters.size());
  for (train::NamedArray& array : checkpoint.parameters) {
    if (!matches(array.path)) continue;
    values.emplace_back(array.values.begin(), array.values.end());
    for (std::size_t i = 0; i < values.back().size(); ++i) values.back()[i] = value(i);
    array.values = values.back();
  }
  train::write_checkpoint(path, checkpoint);
  return path;
}

void expect_failure(const Arguments& command, const std::string& input, int status,
                    const std::string& message) {
  const Outcome outcome = run(command, input);
  const std::string shown = ::testing::PrintToString(command);
  EXPECT_EQ(outcome.status, status) << shown << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty()) << shown;
  EXPECT_THAT(outcome.err, AllOf(StartsWith("polyhead: "), HasSubstr(message))) << shown;
}

TEST(NumbersThatFail, FiniteWeightsThatOverflowAreNoTranslation) {
  const std::string path = altered_checkpoint([](const std::string&) { return true; },
                                              [](std::size_t i) { return i % 2 ? 3e38F : -3e38F; });
  const std::string text = write_text("text", "a b\nc\n");
  expect_failure({"translate", path}, "a b c\n", 5, "sentence 1: ");
  expect_failure({"translate", path, "--set", "decoding.method=sampling"}, "a b c\n", 5, "sentence 1: ");
  expect_failure({"score", path, "--source", text, "--target", text}, "", 5, "not finite");
  expect_failure({"evaluate", path}, "", 5, "");
}

TEST(NumbersThatFail, WhereNoWordCanFollowThereIsNoTranslation) {
  // Only <s>, which is never generated, has a probability above 0.
  const std::string path = altered_checkpoint([](const std::string& p) { return p == "output/bias"; },
                                              [](std::size_t i) { return i == 1 ? 3e38F : -3e38F; });
  const std::string message = "sentence 1: no target token 1 has a probability above 0";
  for (const std::string method : {"beam", "sampling"})
    for (const std::string beam : {"1", "4"})
      expect_failure({"translate", path, "--beam", beam, "--set", "decoding.method=" + method}, "a b c\n", 5,
                     message);
  expect_failure({"translate", path, "--set", "decoding.method=sampling", "--set", "decoding.top_k=3",
                  "--set", "decoding.top_p=0.5"},
                 "a b c\n", 5, message);
}

}  // namespace
}  // namespace polyhead::testing
