#include "polyhead/core/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "polyhead/core/error.h"
#include "support/message.h"

namespace polyhead {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "polyhead_file_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    return found;
  }
  static std::string text(const std::string& path) {
    std::ostringstream content;
    content << std::ifstream(path).rdbuf();
    return content.str();
  }
  template <class Action>
  static std::string error(const Action& action) {
    return testing::message_of<FileError>(action);
  }

  std::string folder_;
};

TEST_F(FileTest, FoldersAreReplacedWhole) {
  const std::vector<NamedContent> first{{"a", "1"}, {"b", "2"}}, second{{"b", "3"}};
  const std::string folder = path("deep/er/folder");
  replace_folder(folder, first);
  EXPECT_EQ(text(folder + "/a") + text(folder + "/b"), "12");
  replace_folder(folder, second);
  EXPECT_EQ(text(folder + "/b"), "3");
  EXPECT_FALSE(fs::exists(folder + "/a"));
  // What a process that was killed left is taken over.
  fs::create_directory(folder + ".tmp-polyhead");
  std::ofstream(folder + ".tmp-polyhead/b") << "half";
  replace_folder(folder, first);
  EXPECT_EQ(text(folder + "/b"), "2");
  EXPECT_EQ(std::distance(fs::directory_iterator(path("deep/er")), fs::directory_iterator()), 1);
}

TEST_F(FileTest, FoldersInTheWayStay) {
  const std::vector<NamedContent> files{{"a", "1"}};
  const std::string folder = path("folder"), temporary = folder + ".tmp-polyhead";
  fs::create_directories(temporary + "/mine");
  EXPECT_EQ(error([&] { replace_folder(folder, files); }),
            temporary + "/mine: is in the way, not a regular file");
  fs::remove_all(temporary);
  fs::create_directory(path("other"));
  fs::create_directory_symlink(path("other"), temporary);
  EXPECT_THAT(error([&] { replace_folder(folder, files); }),
              ::testing::HasSubstr(folder + ": cannot open the folder"));
  EXPECT_TRUE(fs::is_empty(path("other")));
  fs::remove(temporary);
  replace_folder(folder, files);
  const File held(folder, O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(held.id(), LOCK_EX), 0);
  EXPECT_EQ(error([&] { replace_folder(folder, files); }), folder + ": is being written by another process");
  EXPECT_FALSE(fs::exists(temporary));
}

TEST_F(FileTest, IsReplacedWhole) {
  replace_file(path("a"), "first");
  EXPECT_EQ(text(path("a")), "first");
  replace_file(path("a"), "");
  EXPECT_EQ(text(path("a")), "");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(FileTest, WhatAKilledProcessLeftIsTakenOver) {
  std::ofstream(path("a.tmp-polyhead")) << "much longer than what comes";
  replace_file(path("a"), "short");
  EXPECT_EQ(text(path("a")), "short");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(FileTest, WhatIsInTheWayIsNamed) {
  fs::create_directory(path("folder"));
  EXPECT_EQ(error([&] { replace_file(path("folder"), "x"); }),
            path("folder") + ": cannot replace: Is a directory");
  EXPECT_EQ(error([&] { replace_file(path("none/a"), "x"); }),
            path("none/a") + ": cannot write: No such file or directory");
  ASSERT_EQ(::mkfifo(path("a.tmp-polyhead").c_str(), 0600), 0);
  EXPECT_EQ(error([&] { replace_file(path("a"), "x"); }),
            path("a") + ": cannot write: No such device or address");
  fs::create_symlink(path("folder"), path("b.tmp-polyhead"));
  EXPECT_EQ(error([&] { replace_file(path("b"), "x"); }),
            path("b") + ": cannot write: Too many levels of symbolic links");
  EXPECT_THAT(names(), UnorderedElementsAre("folder", "a.tmp-polyhead", "b.tmp-polyhead"));
}

TEST_F(FileTest, IsReplacedByOneAfterTheOther) {
  const std::string first(300000, 'a'), second(200000, 'b');
  std::vector<std::thread> writers;
  for (const std::string* content : {&first, &second})
    writers.emplace_back([&, content] {
      for (int i = 0; i < 20; ++i) replace_file(path("shared"), *content);
    });
  for (int i = 0; i < 200; ++i)
    if (fs::exists(path("shared"))) {
      const std::string found = text(path("shared"));
      EXPECT_TRUE(found == first || found == second) << found.size();
    }
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(names(), ElementsAre("shared"));
}

TEST_F(FileTest, AWriterWaitsForAnotherButNotForEver) {
  File held(path("a.tmp-polyhead"), O_WRONLY | O_CREAT);
  ASSERT_TRUE(held.lock(std::chrono::seconds(0)));
  EXPECT_EQ(error([&] { replace_file(path("a"), "x"); }),
            path("a") + ": is being written by another process");
  EXPECT_THAT(names(), ElementsAre("a.tmp-polyhead")) << "which is the other's";
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    held.close();
  });
  replace_file(path("a"), "x");
  end.join();
  EXPECT_EQ(text(path("a")), "x");
}

TEST_F(FileTest, TemporariesOfSomeNamesAreRemoved) {
  for (const char* name : {"a.h5.tmp-polyhead", "a.h5.tmp-77", "b.tmp-polyhead", "a.h5", "tmp"})
    std::ofstream(path(name)) << "x";
  constexpr std::string_view names_of_a[]{"a."};
  remove_temporaries(folder_, names_of_a);
  EXPECT_THAT(names(), UnorderedElementsAre("b.tmp-polyhead", "a.h5", "tmp"));
  remove_temporaries(folder_);
  EXPECT_THAT(names(), UnorderedElementsAre("a.h5", "tmp"));
  EXPECT_EQ(error([&] { remove_temporaries(path("none")); }),
            path("none") + ": cannot list: No such file or directory");
}

TEST_F(FileTest, TellsWhatTheSystemSays) {
  File full("/dev/full", O_WRONLY);
  EXPECT_EQ(error([&] { full.write("x"); }), "/dev/full: cannot write: No space left on device");
  EXPECT_EQ(error([&] { full.truncate(0); }), "/dev/full: cannot truncate: Invalid argument");
  full.close();
  full.close();
  EXPECT_EQ(error([&] { File(path("none"), O_RDONLY); }),
            path("none") + ": cannot read: No such file or directory");
  EXPECT_EQ(error([&] { File(path("none"), O_RDONLY | O_DIRECTORY, 0, "run"); }),
            "run: cannot open the folder: No such file or directory");
}

}  // namespace
}  // namespace polyhead
