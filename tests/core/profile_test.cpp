#include "polyhead/core/profile.h"

#include <gtest/gtest.h>

namespace polyhead {
namespace {

struct Doubling {};

TEST(Profile, CountsByOpAndPass) {
  Profile profile;
  profile.add("Linear", Pass::forward, 1, 0.5);
  profile.add("Linear", Pass::backward, 1, 2);
  profile.add("Linear", Pass::forward, 1, 0.25);
  ASSERT_EQ(profile.rows().size(), 2U);
  EXPECT_EQ(profile.rows()[0].op, "Linear");
  EXPECT_EQ(profile.rows()[0].calls, 2);
  EXPECT_EQ(profile.rows()[0].seconds, 0.75);
  EXPECT_EQ(profile.rows()[1].pass, Pass::backward);
}

TEST(Profile, AddsAnother) {
  Profile a, b;
  a.add("Linear", Pass::forward, 1, 1);
  b.add("Linear", Pass::forward, 3, 2);
  b.add("Adam", Pass::update, 1, 4);
  a.add(b);
  ASSERT_EQ(a.rows().size(), 2U);
  EXPECT_EQ(a.rows()[0].calls, 4);
  EXPECT_EQ(a.rows()[0].seconds, 3);
  EXPECT_EQ(a.rows()[1].op, "Adam");
}

TEST(Profile, TimersCountOneCallEachAndNothingWithoutAProfile) {
  Profile profile;
  { const ProfileTimer timer(&profile, "Linear", Pass::forward); }
  { const ProfileTimer timer(nullptr, "Linear", Pass::forward); }
  ASSERT_EQ(profile.rows().size(), 1U);
  EXPECT_EQ(profile.rows()[0].calls, 1);
  EXPECT_GE(profile.rows()[0].seconds, 0);
}

TEST(Profile, NamesTypesWithoutNamespaces) {
  EXPECT_EQ(type_name<Doubling>(), "Doubling");
  EXPECT_EQ(type_name<const Doubling>(), "Doubling");
  EXPECT_EQ(type_name<Profile>(), "Profile");
}

TEST(Profile, NamesPasses) {
  EXPECT_STREQ(name(Pass::forward), "forward");
  EXPECT_STREQ(name(Pass::backward), "backward");
  EXPECT_STREQ(name(Pass::update), "update");
}

}  // namespace
}  // namespace polyhead
