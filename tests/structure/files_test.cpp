#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace polyhead {
namespace {

/// Streams of the standard library do not tell why they failed: files are written through core/file.h.
TEST(Files, AreWrittenInOnePlace) {
  const std::regex writes(R"(std::ofstream|std::fstream|\bfopen\(|[ (]::(write|rename)\()");
  const std::filesystem::path source = POLYHEAD_SOURCE_DIR;
  for (const char* root : {"src", "tools/polyhead", "include"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / root)) {
      const std::string file = std::filesystem::relative(entry.path(), source).string();
      if (!entry.is_regular_file() || file == "src/core/file.cpp") continue;
      std::ifstream in(entry.path());
      std::string line;
      for (int number = 1; std::getline(in, line); ++number) {
        const bool to_stdout =
            file == "tools/polyhead/files.cpp" && line.find("::write(descriptor") != line.npos;
        EXPECT_TRUE(to_stdout || !std::regex_search(line, writes)) << file << ':' << number << ": " << line;
      }
    }
}

}  // namespace
}  // namespace polyhead
