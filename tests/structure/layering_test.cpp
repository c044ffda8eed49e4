#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace polyhead {
namespace {

namespace fs = std::filesystem;

/// What a folder may include besides itself: the arrows of ARCHITECTURE.md, transitively.
const std::map<std::string, std::set<std::string>> allowed{
    {"core", {}},
    {"config", {"core"}},
    {"tensor", {"core"}},
    {"kernels", {"core", "tensor"}},
    {"ops", {"core", "tensor", "kernels"}},
    {"autograd", {"core", "tensor", "kernels", "ops"}},
    {"nn", {"core", "config", "tensor", "kernels", "ops", "autograd"}},
    {"text", {"core", "config"}},
    {"data", {"core", "config", "tensor", "text"}},
    {"metrics", {"core"}},
    {"decode", {"core", "config", "tensor", "kernels", "ops", "autograd", "nn"}},
    {"train",
     {"core", "config", "tensor", "kernels", "ops", "autograd", "nn", "text", "data", "metrics", "decode"}},
    {"heads",
     {"core", "config", "tensor", "kernels", "ops", "autograd", "nn", "text", "data", "metrics", "decode",
      "train"}},
    {"experiment",
     {"core", "config", "tensor", "kernels", "ops", "autograd", "nn", "text", "data", "metrics", "decode",
      "train", "heads"}},
};

/// The folder that an include names: "polyhead/nn/layers.h" and "nn/private.h" are of nn; "private.h" of nobody.
std::string folder_of(const std::string& include) {
  static const std::regex pattern(R"(^(?:polyhead/)?([a-z]+)/.*)");
  std::smatch match;
  return std::regex_match(include, match, pattern) ? match[1].str() : "";
}

/// Calls check(folder, file, what it includes) for every quoted include under `root`/<folder>.
template <class Check>
int each_include(const fs::path& root, const Check& check) {
  static const std::regex pattern(R"re(^\s*#include "([^"]+)")re");
  int found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const std::string folder = fs::relative(entry.path(), root).begin()->string();
    std::ifstream in(entry.path());
    std::smatch match;
    for (std::string line; std::getline(in, line);)
      if (std::regex_search(line, match, pattern)) {
        check(folder, entry.path().string(), match[1].str());
        ++found;
      }
  }
  return found;
}

TEST(Layering, NoIncludePointsUp) {
  for (const char* root : {"include/polyhead", "src"}) {
    const int includes =
        each_include(fs::path(POLYHEAD_SOURCE_DIR) / root,
                     [&](const std::string& folder, const std::string& file, const std::string& named) {
                       const std::string included = folder_of(named);
                       ASSERT_TRUE(allowed.contains(folder))
                           << file << ": folder " << folder << " has no row in the table";
                       if (included.empty() || included == folder) return;
                       EXPECT_TRUE(allowed.at(folder).contains(included)) << file << " includes " << included;
                     });
    EXPECT_GT(includes, 50) << root;
  }
}

/// The program is on top: it is all that includes its headers, as "files.h" from its own folder, and it takes the
/// library through public headers alone.
TEST(Layering, TheProgramIsOnTop) {
  const fs::path source = POLYHEAD_SOURCE_DIR;
  std::set<std::string> headers;
  for (const auto& entry : fs::directory_iterator(source / "tools/polyhead"))
    if (entry.path().extension() == ".h") headers.insert(entry.path().filename());
  EXPECT_TRUE(headers.contains("commands.h"));
  for (const char* root : {"include/polyhead", "src"})
    each_include(source / root, [&](const std::string&, const std::string& file, const std::string& named) {
      EXPECT_EQ(named.find("tools/"), std::string::npos) << file << " includes " << named;
      const bool beside =
          fs::exists(fs::path(file).parent_path() / named) || fs::exists(source / "src" / named);
      EXPECT_TRUE(beside || !headers.contains(named)) << file << " includes " << named;
    });
  each_include(source / "tools", [&](const std::string&, const std::string& file, const std::string& named) {
    const bool own = headers.contains(named) || named == "default_config.h";
    EXPECT_TRUE(own || fs::exists(source / "include" / named)) << file << " includes " << named;
  });
}

}  // namespace
}  // namespace polyhead
