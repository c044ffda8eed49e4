#include "polyhead/core/unicode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace polyhead::unicode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Unicode, RecognisesWellFormedText) {
  EXPECT_TRUE(is_valid(""));
  EXPECT_TRUE(is_valid("naïve 日本語 👩‍🔬"));
  EXPECT_TRUE(is_valid(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_valid("\xC0\xAF")) << "overlong";
  EXPECT_FALSE(is_valid("\xED\xA0\x80")) << "surrogate";
  EXPECT_FALSE(is_valid("\xF4\x90\x80\x80")) << "above U+10FFFF";
  EXPECT_FALSE(is_valid("a\xE2\x82")) << "cut short";
  EXPECT_FALSE(is_valid("\x80")) << "lone continuation byte";
}

TEST(Unicode, RepairsIllFormedSubsequences) {
  EXPECT_EQ(repair("a\xFF"
                   "b"),
            "a\uFFFDb");
  EXPECT_EQ(repair("a\xE2\x82 b"), "a\uFFFD b");
  EXPECT_EQ(repair("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repair("whole €"), "whole €");
  EXPECT_TRUE(is_valid(repair("\xF0\x9F\x91\xC3\x28\xFE")));
}

TEST(Unicode, CutsTextIntoCodePoints) {
  EXPECT_THAT(code_points("aß€👩"), ElementsAre(U'a', U'ß', U'€', U'👩'));
  EXPECT_THAT(characters("aß€👩"), ElementsAre("a", "ß", "€", "👩"));
  EXPECT_THAT(characters(""), IsEmpty());
  EXPECT_EQ(encode(U'a') + encode(U'ß') + encode(U'€') + encode(U'👩'), "aß€👩");
}

TEST(Unicode, LowersCaseAsTheRootLocaleDoes) {
  EXPECT_EQ(lowercase("Hello A-Z [@]"), "hello a-z [@]");
  EXPECT_EQ(lowercase("ÜNÏCÖDÉ Straße"), "ünïcödé straße");
  EXPECT_EQ(lowercase("ΟΔΟΣ"), "οδος") << "final sigma";
  EXPECT_EQ(lowercase("İ"), "i\u0307");
}

TEST(Unicode, Normalises) {
  EXPECT_EQ(nfc("e\u0301"), "é");
  EXPECT_EQ(nfc("ﬁ"), "ﬁ");
  EXPECT_EQ(nfkc("ﬁ １"), "fi 1");
  EXPECT_EQ(nfkc("plain"), "plain");
}

TEST(Unicode, KnowsWhiteSpace) {
  for (const char32_t c : {U' ', U'\t', U'\n', U'\r', U'\v', U'\f', U'\x1C', U'\x1F', U'\u0085', U'\u00A0',
                           U'\u1680', U'\u2003', U'\u2028', U'\u202F', U'\u205F', U'\u3000'})
    EXPECT_TRUE(is_space(c)) << static_cast<unsigned>(c);
  for (const char32_t c : {U'a', U'\0', U'\u200B', U'\u200D', U'\uFEFF', U'\u180E'})
    EXPECT_FALSE(is_space(c)) << static_cast<unsigned>(c);
}

TEST(Unicode, SplitsAndStripsAtWhiteSpace) {
  EXPECT_THAT(split("  a\u00A0b\t\nü  "), ElementsAre("a", "b", "ü"));
  EXPECT_THAT(split("one"), ElementsAre("one"));
  EXPECT_THAT(split(" \u3000 "), IsEmpty());
  EXPECT_EQ(strip("\u3000 a b\u0085"), "a b");
  EXPECT_EQ(strip("ü"), "ü");
  EXPECT_EQ(strip(" \t "), "");
  EXPECT_EQ(strip(""), "");
}

}  // namespace
}  // namespace polyhead::unicode
