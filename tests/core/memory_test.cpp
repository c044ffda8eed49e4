#include "polyhead/core/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

namespace polyhead {
namespace {

namespace fs = std::filesystem;

TEST(Memory, CountsWhatIsTouched) {
  constexpr std::int64_t bytes = 64 << 20;
  constexpr std::int64_t pending = 4 << 20;  // the kernel counts a few pages of each thread later
  const std::int64_t before = resident_bytes();
  EXPECT_GT(before, 0);
  EXPECT_LE(before, peak_resident_bytes() + pending);
  {
    const std::vector<char> touched(bytes, 1);
    EXPECT_GE(resident_bytes(), before + bytes - pending);
    EXPECT_GE(peak_resident_bytes(), before + bytes - pending);
  }
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
  EXPECT_LT(resident_bytes(), before + bytes / 2);
#endif
  EXPECT_GE(peak_resident_bytes(), before + bytes - pending);
}

TEST(Memory, WhatCanBeHadIsWithinAllLimits) {
  const std::int64_t limit = memory_limit();
  EXPECT_GT(limit, resident_bytes());
  EXPECT_LE(limit, std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) + resident_bytes());
  EXPECT_GE(address_space_bytes(), resident_bytes());
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "no limit here: AddressSanitizer's own memory is beyond any";
#endif
  rlimit before{};
  getrlimit(RLIMIT_DATA, &before);
  const rlimit less{rlim_t{1} << 30, before.rlim_max};
  setrlimit(RLIMIT_DATA, &less);
  const std::int64_t limited = memory_limit();
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_LE(limited, std::int64_t{1} << 30);
  EXPECT_LE(limited, address_space_limit());
}

/// A file system with files of control groups, and what it leaves to a process that has 100 bytes.
class ControlGroups {
 public:
  explicit ControlGroups(const std::vector<std::pair<std::string, std::string>>& files) {
    std::string name = (fs::temp_directory_path() / "polyhead-groups-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    for (const auto& [path, text] : files) {
      fs::create_directories(fs::path(root_ + path).parent_path());
      std::ofstream(root_ + path) << text;
    }
  }
  ~ControlGroups() { fs::remove_all(root_); }
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;
  std::int64_t limit() const { return control_group_limit(100, root_); }

 private:
  std::string root_;
};

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
const std::string groups = "/proc/self/cgroup", version_2 = "/sys/fs/cgroup",
                  version_1 = "/sys/fs/cgroup/memory";

TEST(ControlGroups, WithoutThemNothingIsLimited) {
  EXPECT_EQ(ControlGroups({}).limit(), unlimited);
  EXPECT_EQ(ControlGroups({{groups, "0::/\n"}}).limit(), unlimited);
  EXPECT_EQ(ControlGroups({{groups, "nonsense\n0::\n::\n\n"}}).limit(), unlimited);
  EXPECT_EQ(ControlGroups({{groups, "0::/a\n"}, {version_2 + "/a/memory.max", "max\n"}}).limit(), unlimited);
}

TEST(ControlGroups, TheLowestLimitOfAllThatAProcessIsInHolds) {
  const std::string pod = "/kube.slice/cri:pod:7";  // names have colons
  EXPECT_EQ(ControlGroups({{groups, "0::" + pod + "\n"},
                           {version_2 + "/kube.slice/memory.max", "9000\n"},
                           {version_2 + pod + "/memory.max", "5000\n"}})
                .limit(),
            5000);
  EXPECT_EQ(ControlGroups({{groups, "0::" + pod + "\n"},
                           {version_2 + "/kube.slice/memory.max", "4000\n"},
                           {version_2 + pod + "/memory.max", "max\n"}})
                .limit(),
            4000);
  // As a container sees it: its own group is the root.
  EXPECT_EQ(ControlGroups({{groups, "0::/\n"}, {version_2 + "/memory.max", "3000\n"}}).limit(), 3000);
  EXPECT_EQ(ControlGroups({{groups, "0::/../other\n"}, {version_2 + "/memory.max", "3000\n"}}).limit(), 3000);
}

TEST(ControlGroups, OfVersionOneAreReadToo) {
  const std::string lines = "5:cpu,cpuacct:/x\n4:memory:/docker/12ab\n0::/\n";
  EXPECT_EQ(
      ControlGroups({{groups, lines}, {version_1 + "/docker/12ab/memory.limit_in_bytes", "7000\n"}}).limit(),
      7000);
  // In a container the folder of its group is mounted where the root is expected.
  EXPECT_EQ(ControlGroups({{groups, lines}, {version_1 + "/memory.limit_in_bytes", "6000\n"}}).limit(), 6000);
  EXPECT_EQ(
      ControlGroups({{groups, "4:hugetlb,memory:/\n"}, {version_1 + "/memory.limit_in_bytes", "6000\n"}})
          .limit(),
      6000);
  EXPECT_EQ(ControlGroups({{groups, lines}, {version_1 + "/x/memory.limit_in_bytes", "6000\n"}}).limit(),
            unlimited);
}

TEST(ControlGroups, WhatOthersHoldIsNotLeftButFilesThatAreKeptAre) {
  const auto limit = [](const std::string& stat) {
    return ControlGroups({{groups, "0::/a\n"},
                          {version_2 + "/a/memory.max", "5000\n"},
                          {version_2 + "/a/memory.stat", stat}})
        .limit();
  };
  EXPECT_EQ(limit("anon 100\nfile 4000\n"), 5000) << "its own";
  EXPECT_EQ(limit("anon 1100\nfile 4000\nshmem 30\ninactive_anon 900\n"), 5000 - 1030);
  EXPECT_EQ(limit("anon 60\n"), 5000) << "counted later than by the process";
  EXPECT_EQ(limit("anon 6000\n"), 0);
  EXPECT_EQ(ControlGroups({{groups, "3:memory:/a\n"},
                           {version_1 + "/a/memory.limit_in_bytes", "5000\n"},
                           {version_1 + "/a/memory.stat", "rss 700\ntotal_cache 4000\ntotal_rss 1100\n"}})
                .limit(),
            4000);
}

}  // namespace
}  // namespace polyhead
