#include "polyhead/core/memory.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace polyhead
