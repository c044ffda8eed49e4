#include "polyhead/core/error.h"
#include "polyhead/data/tasks.h"

namespace polyhead::data {
namespace {

constexpr const char* english_small[] = {"zero",    "one",     "two",       "three",    "four",
                                         "five",    "six",     "seven",     "eight",    "nine",
                                         "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                         "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr const char* english_tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                        "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr const char* german_small[] = {"null",     "ein",      "zwei",     "drei",     "vier",
                                        "fünf",     "sechs",    "sieben",   "acht",     "neun",
                                        "zehn",     "elf",      "zwölf",    "dreizehn", "vierzehn",
                                        "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr const char* german_tens[] = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                       "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

void check(int number) {
  require(number >= 0 && number <= 999'999, "number words: ", number, " is not in 0 to 999999");
}

std::string english_below_hundred(int n) {
  if (n < 20) return english_small[n];
  std::string words = english_tens[n / 10];
  if (n % 10 > 0) words.append("-").append(english_small[n % 10]);
  return words;
}

std::string english_below_thousand(int n) {
  if (n < 100) return english_below_hundred(n);
  std::string words = english_small[n / 100];
  words.append(" hundred");
  if (n % 100 > 0) words.append(" ").append(english_below_hundred(n % 100));
  return words;
}

/// As the first part of a longer number: 1 is "ein", 101 "einhundertein".
std::string german_stem(int n) {
  std::string word;
  if (n >= 100) word.append(german_small[n / 100]).append("hundert");
  n %= 100;
  if (n == 0) return word;
  if (n < 20) return word.append(german_small[n]);
  if (n % 10 > 0) word.append(german_small[n % 10]).append("und");
  return word.append(german_tens[n / 10]);
}

}  // namespace

std::string english_number(int number) {
  check(number);
  const int thousands = number / 1000, rest = number % 1000;
  if (thousands == 0) return english_below_thousand(rest);
  std::string words = english_below_thousand(thousands).append(" thousand");
  if (rest > 0) words.append(" ").append(english_below_thousand(rest));
  return words;
}

std::string german_number(int number) {
  check(number);
  if (number == 0) return german_small[0];
  const int thousands = number / 1000, rest = number % 1000;
  std::string word;
  if (thousands > 0) word.append(german_stem(thousands)).append("tausend");
  // A number that ends in one ends in "eins"; eleven does not.
  return word.append(german_stem(rest)).append(rest % 100 == 1 ? "s" : "");
}

}  // namespace polyhead::data
