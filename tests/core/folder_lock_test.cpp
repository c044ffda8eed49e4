#include "polyhead/core/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "polyhead/core/error.h"
#include "support/message.h"

namespace polyhead {
namespace {

namespace fs = std::filesystem;

class FolderLockTest : public ::testing::Test {
 protected:
  FolderLockTest() {
    std::string pattern = (fs::temp_directory_path() / "polyhead_lock_XXXXXX").string();
    scratch_ = mkdtemp(pattern.data());
    fs::create_directory(folder_ = scratch_ + "/folder");
  }
  ~FolderLockTest() override { fs::remove_all(scratch_); }

  std::string error_of_locking(FolderLock::Holder holder = FolderLock::Holder::process) const {
    return testing::message_of<FileError>([&] { FolderLock(folder_, "trained", holder); });
  }
  static std::string error_of(const FolderLock& lock) {
    return testing::message_of<FileError>([&] { lock.require_in_place(); });
  }

  std::string scratch_, folder_;
};

constexpr const char* nothing = "nothing thrown";

TEST_F(FolderLockTest, KeepsOthersOut) {
  {
    const FolderLock lock(folder_, "trained");
    EXPECT_EQ(error_of_locking(), folder_ + ": is being trained by another process");
    EXPECT_EQ(error_of_locking(FolderLock::Holder::process_and_children),
              folder_ + ": is being trained by another process");
  }
  EXPECT_EQ(error_of_locking(), nothing);
  fs::remove(folder_);
  EXPECT_EQ(error_of_locking(), folder_ + ": cannot open the folder: No such file or directory");
}

TEST_F(FolderLockTest, WaitsForChildrenOfAProcessThatIsGone) {
  auto lock = std::make_unique<FolderLock>(folder_, "run");
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    lock.reset();
  });
  EXPECT_EQ(error_of_locking(FolderLock::Holder::process_and_children), nothing);
  end.join();
}

TEST_F(FolderLockTest, NoticesThatItsFolderIsElsewhere) {
  const FolderLock lock(folder_, "trained");
  EXPECT_EQ(error_of(lock), nothing);
  fs::rename(folder_, scratch_ + "/other");
  EXPECT_EQ(error_of(lock), folder_ + ": was moved or removed while it was trained");
  fs::create_directory(folder_);
  EXPECT_EQ(error_of(lock), folder_ + ": was moved or replaced while it was trained");
  EXPECT_EQ(error_of_locking(), nothing) << "it is another folder";
  fs::remove(folder_);
  fs::create_directory_symlink("other", folder_);
  EXPECT_EQ(error_of(lock), nothing) << "it can be found there again";
  fs::remove(folder_);
  fs::create_symlink("folder", folder_);
  EXPECT_EQ(error_of(lock), folder_ + ": cannot find the folder: Too many levels of symbolic links");
}

}  // namespace
}  // namespace polyhead
