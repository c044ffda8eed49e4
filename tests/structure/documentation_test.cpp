#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "polyhead/config/yaml.h"
#include "polyhead/train/config.h"

namespace polyhead {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(std::string(POLYHEAD_SOURCE_DIR) + "/" + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Documentation, ArchitectureListsEveryKeyAsTheProgramDoes) {
  EXPECT_NE(read("ARCHITECTURE.md").find(config::document<train::Config>()), std::string::npos)
      << "the table of keys in ARCHITECTURE.md differs from `polyhead config --keys`";
}

TEST(Documentation, TheConfigurationInTheReadmeIsValid) {
  const std::string readme = read("README.md");
  const std::size_t begin = readme.find("```yaml\n") + 8, end = readme.find("```", begin);
  ASSERT_LT(begin, end);
  EXPECT_EQ(config::parse<train::Config>(readme.substr(begin, end - begin), "README.md").name, "my_model");
}

TEST(Documentation, EveryConfigurationIsValid) {
  for (const char* path : {"configs/toy.yaml", "configs/grammar.yaml", "configs/multi30k_tiny.yaml"})
    EXPECT_NO_THROW(config::load<train::Config>(std::string(POLYHEAD_SOURCE_DIR) + "/" + path)) << path;
}

}  // namespace
}  // namespace polyhead
