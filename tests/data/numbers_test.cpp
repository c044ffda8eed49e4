#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "data_files.h"
#include "polyhead/core/error.h"
#include "polyhead/data/tasks.h"

namespace polyhead::data {
namespace {

// Spelled out, so that the rules are checked against something that is not made by rules.
const std::vector<std::string> german_0_to_99 = {"null",
                                                 "eins",
                                                 "zwei",
                                                 "drei",
                                                 "vier",
                                                 "fünf",
                                                 "sechs",
                                                 "sieben",
                                                 "acht",
                                                 "neun",
                                                 "zehn",
                                                 "elf",
                                                 "zwölf",
                                                 "dreizehn",
                                                 "vierzehn",
                                                 "fünfzehn",
                                                 "sechzehn",
                                                 "siebzehn",
                                                 "achtzehn",
                                                 "neunzehn",
                                                 "zwanzig",
                                                 "einundzwanzig",
                                                 "zweiundzwanzig",
                                                 "dreiundzwanzig",
                                                 "vierundzwanzig",
                                                 "fünfundzwanzig",
                                                 "sechsundzwanzig",
                                                 "siebenundzwanzig",
                                                 "achtundzwanzig",
                                                 "neunundzwanzig",
                                                 "dreißig",
                                                 "einunddreißig",
                                                 "zweiunddreißig",
                                                 "dreiunddreißig",
                                                 "vierunddreißig",
                                                 "fünfunddreißig",
                                                 "sechsunddreißig",
                                                 "siebenunddreißig",
                                                 "achtunddreißig",
                                                 "neununddreißig",
                                                 "vierzig",
                                                 "einundvierzig",
                                                 "zweiundvierzig",
                                                 "dreiundvierzig",
                                                 "vierundvierzig",
                                                 "fünfundvierzig",
                                                 "sechsundvierzig",
                                                 "siebenundvierzig",
                                                 "achtundvierzig",
                                                 "neunundvierzig",
                                                 "fünfzig",
                                                 "einundfünfzig",
                                                 "zweiundfünfzig",
                                                 "dreiundfünfzig",
                                                 "vierundfünfzig",
                                                 "fünfundfünfzig",
                                                 "sechsundfünfzig",
                                                 "siebenundfünfzig",
                                                 "achtundfünfzig",
                                                 "neunundfünfzig",
                                                 "sechzig",
                                                 "einundsechzig",
                                                 "zweiundsechzig",
                                                 "dreiundsechzig",
                                                 "vierundsechzig",
                                                 "fünfundsechzig",
                                                 "sechsundsechzig",
                                                 "siebenundsechzig",
                                                 "achtundsechzig",
                                                 "neunundsechzig",
                                                 "siebzig",
                                                 "einundsiebzig",
                                                 "zweiundsiebzig",
                                                 "dreiundsiebzig",
                                                 "vierundsiebzig",
                                                 "fünfundsiebzig",
                                                 "sechsundsiebzig",
                                                 "siebenundsiebzig",
                                                 "achtundsiebzig",
                                                 "neunundsiebzig",
                                                 "achtzig",
                                                 "einundachtzig",
                                                 "zweiundachtzig",
                                                 "dreiundachtzig",
                                                 "vierundachtzig",
                                                 "fünfundachtzig",
                                                 "sechsundachtzig",
                                                 "siebenundachtzig",
                                                 "achtundachtzig",
                                                 "neunundachtzig",
                                                 "neunzig",
                                                 "einundneunzig",
                                                 "zweiundneunzig",
                                                 "dreiundneunzig",
                                                 "vierundneunzig",
                                                 "fünfundneunzig",
                                                 "sechsundneunzig",
                                                 "siebenundneunzig",
                                                 "achtundneunzig",
                                                 "neunundneunzig"};
const std::vector<std::string> english_0_to_19 = {"zero",    "one",     "two",       "three",    "four",
                                                  "five",    "six",     "seven",     "eight",    "nine",
                                                  "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                                  "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
const std::vector<std::string> english_tens = {"twenty", "thirty",  "forty",  "fifty",
                                               "sixty",  "seventy", "eighty", "ninety"};
const std::vector<std::string> german_hundreds = {"einhundert",    "zweihundert", "dreihundert",
                                                  "vierhundert",   "fünfhundert", "sechshundert",
                                                  "siebenhundert", "achthundert", "neunhundert"};

TEST(Numbers, GermanBelowAThousand) {
  ASSERT_EQ(german_0_to_99.size(), 100u);
  for (int n = 0; n < 100; ++n) {
    const std::string& spelled = german_0_to_99[static_cast<std::size_t>(n)];
    EXPECT_EQ(german_number(n), spelled);
    for (int hundreds = 1; hundreds < 10; ++hundreds) {
      const std::string& head = german_hundreds[static_cast<std::size_t>(hundreds) - 1];
      EXPECT_EQ(german_number(100 * hundreds + n), n == 0 ? head : head + spelled);
    }
  }
}

TEST(Numbers, EnglishBelowAThousand) {
  for (int n = 0; n < 1000; ++n) {
    const int rest = n % 100;
    std::string words = n >= 100 ? english_0_to_19[static_cast<std::size_t>(n / 100)] + " hundred" : "";
    if (rest > 0 || n == 0) {
      if (n >= 100) words += " ";
      if (rest < 20) {
        words += english_0_to_19[static_cast<std::size_t>(rest)];
      } else {
        words += english_tens[static_cast<std::size_t>(rest / 10) - 2];
        if (rest % 10 > 0) words += "-" + english_0_to_19[static_cast<std::size_t>(rest % 10)];
      }
    }
    EXPECT_EQ(english_number(n), words);
  }
}

TEST(Numbers, Examples) {
  EXPECT_EQ(english_number(231), "two hundred thirty-one");
  EXPECT_EQ(german_number(231), "zweihunderteinunddreißig");
  EXPECT_EQ(english_number(1001), "one thousand one");
  EXPECT_EQ(german_number(1001), "eintausendeins");
  EXPECT_EQ(german_number(1000), "eintausend");
  EXPECT_EQ(german_number(1011), "eintausendelf");
  EXPECT_EQ(german_number(2101), "zweitausendeinhunderteins");
  EXPECT_EQ(english_number(21000), "twenty-one thousand");
  EXPECT_EQ(german_number(21000), "einundzwanzigtausend");
  EXPECT_EQ(german_number(100000), "einhunderttausend");
  EXPECT_EQ(german_number(101000), "einhunderteintausend");
  EXPECT_EQ(german_number(111111), "einhundertelftausendeinhundertelf");
  EXPECT_EQ(english_number(316477), "three hundred sixteen thousand four hundred seventy-seven");
  EXPECT_EQ(german_number(316477), "dreihundertsechzehntausendvierhundertsiebenundsiebzig");
  EXPECT_EQ(english_number(999999), "nine hundred ninety-nine thousand nine hundred ninety-nine");
  EXPECT_EQ(german_number(999999), "neunhundertneunundneunzigtausendneunhundertneunundneunzig");
}

TEST(Numbers, AreOneToOne) {
  std::set<std::string> english, german;
  for (int n = 0; n < 1'000'000; n += n < 10'000 ? 1 : 37) {
    EXPECT_TRUE(english.insert(english_number(n)).second) << n;
    EXPECT_TRUE(german.insert(german_number(n)).second) << n;
  }
}

TEST(Numbers, RefuseWhatTheyCannotSay) {
  EXPECT_EQ(message_of<Error>([] { english_number(1'000'000); }),
            "number words: 1000000 is not in 0 to 999999");
  EXPECT_EQ(message_of<Error>([] { german_number(-1); }), "number words: -1 is not in 0 to 999999");
}

}  // namespace
}  // namespace polyhead::data
