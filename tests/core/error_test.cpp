#include "polyhead/core/error.h"

#include <gtest/gtest.h>

namespace polyhead {
namespace {

template <class E>
Status status_of() {
  try {
    require<E>(false, "no");
  } catch (const Error& e) {
    return e.status();
  }
  return Status{0};
}

TEST(Error, EachKindHasItsExitStatus) {
  EXPECT_EQ(static_cast<int>(status_of<Error>()), 2);
  EXPECT_EQ(static_cast<int>(status_of<DataError>()), 3);
  EXPECT_EQ(static_cast<int>(status_of<FileError>()), 4);
  EXPECT_EQ(static_cast<int>(status_of<NumbersError>()), 5);
  EXPECT_EQ(Error("x", Status::file).status(), Status::file);
}

TEST(Error, RequireJoinsItsParts) {
  require(true, "never");
  try {
    require(false, "model.heads: ", 6, " does not divide d_model ", 128L, ", or ", 0.5, ' ',
            std::string("here"));
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "model.heads: 6 does not divide d_model 128, or 0.5 here");
  }
}

TEST(Error, ConcatStreamsItsParts) { EXPECT_EQ(concat("a", 1, 2.5), "a12.5"); }

}  // namespace
}  // namespace polyhead
