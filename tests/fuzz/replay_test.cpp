#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "targets.h"

namespace polyhead::fuzz {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  void (*run)(std::string_view input);
};
void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }
constexpr Target targets[] = {{"checkpoint", checkpoint}, {"configuration", configuration},
                              {"experiment", experiment}, {"lines", lines},
                              {"metrics", metrics},       {"tokenizer", tokenizer}};

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, AnswersEveryInput) {
  std::vector<fs::path> inputs;
  for (const auto& entry : fs::directory_iterator(fs::path(POLYHEAD_FUZZ_CORPUS) / GetParam().name))
    inputs.push_back(entry.path());
  std::sort(inputs.begin(), inputs.end());
  EXPECT_GE(inputs.size(), 3U);
  for (const fs::path& path : inputs) {
    std::ifstream in(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NO_THROW(GetParam().run(input)) << path;
  }
  EXPECT_NO_THROW(GetParam().run(""));
}

INSTANTIATE_TEST_SUITE_P(Corpus, Replay, ::testing::ValuesIn(targets),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace polyhead::fuzz
