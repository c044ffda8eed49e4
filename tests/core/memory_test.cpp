#include "polyhead/core/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace polyhead {
namespace {

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

}  // namespace
}  // namespace polyhead
