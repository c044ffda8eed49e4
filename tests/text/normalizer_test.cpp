#include "polyhead/text/normalizer.h"

#include <gtest/gtest.h>

namespace polyhead::text {
namespace {

TEST(Normalizer, MakesEveryRunOfWhiteSpaceOneSpace) {
  const Normalizer normalizer;
  EXPECT_EQ(normalizer("  a\t b\u2028c\u00A0\u3000d \r"), "a b c d");
  EXPECT_EQ(normalizer(" \u2028\t"), "");
  EXPECT_EQ(normalizer(""), "");
  EXPECT_EQ(normalizer("A\u200Bb"), "A\u200Bb") << "U+200B is no white space";
}

TEST(Normalizer, LowerCases) {
  const Normalizer normalizer{Normalization::none, true};
  EXPECT_EQ(normalizer("ÄRGER Straße ΣΟΦΟΣ"), "ärger straße σοφος");
}

TEST(Normalizer, BringsTextIntoTheForm) {
  EXPECT_EQ((Normalizer{Normalization::none, false}("e\u0301 ﬁ")), "e\u0301 ﬁ");
  EXPECT_EQ((Normalizer{Normalization::nfc, false}("e\u0301 ﬁ")), "é ﬁ");
  EXPECT_EQ((Normalizer{Normalization::nfkc, false}("e\u0301 ﬁ")), "é fi");
}

TEST(Normalizer, LowerCasesWhatNormalisationUncovers) {
  EXPECT_EQ((Normalizer{Normalization::nfkc, true}("\u210C")), "h") << "black-letter capital H";
}

TEST(Normalizer, IsIdempotent) {
  for (const auto form : {Normalization::none, Normalization::nfc, Normalization::nfkc}) {
    const Normalizer normalizer{form, true};
    for (const char* line : {"İstanbul  ẞ", "\u210C\u0301 x\u2028", "①½ Ǆ", "Å\u0323 \u3000 ﬃ"}) {
      EXPECT_EQ(normalizer(normalizer(line)), normalizer(line)) << line;
    }
  }
}

}  // namespace
}  // namespace polyhead::text
