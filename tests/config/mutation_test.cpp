#include <gtest/gtest.h>

#include <random>

#include "settings.h"

namespace {

/// `text` with some of its parts deleted, doubled, moved or replaced by pieces of YAML.
std::string mutated(std::string text, std::mt19937& random) {
  static const std::vector<std::string> pieces{
      ":",        ": ",    "- ",    "[",           "]",   "{",    "}",
      "\n",       "\n  ",  "\t",    "#",           "&a ", "*a",   "!!int ",
      "!",        "<<: ",  "\"",    "'",           "|",   ">\n",  "? ",
      ", ",       "---\n", "...\n", "%YAML 1.2\n", "\\",  "\xFF", std::string(1, '\0'),
      "\xC2\x85", "\r",    "null",  "1e999",       "0x",  "~",    "@",
      "`"};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % (n + 1)); };
  for (std::size_t changes = 1 + below(1); changes > 0; --changes) {
    const std::size_t at = below(text.size()), length = below(std::min<std::size_t>(8, text.size() - at));
    const std::string part = text.substr(at, length);
    switch (random() % 5) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, part);
        break;
      case 2:
        text.insert(below(text.size()), part);
        break;
      case 3:
        text.insert(at, pieces[random() % pieces.size()]);
        break;
      default:
        text.replace(at, length, pieces[random() % pieces.size()]);
    }
  }
  return text;
}

}  // namespace

TEST(Mutations, ParseOrAreRefused) {
  const std::string valid =
      "# comment\nname: 'a b'\n" + polyhead::config::dump(settings::Run{}).substr(10) + "  # end\n";
  ASSERT_EQ(settings::message(valid), "");
  std::mt19937 random(1);
  int parsed = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string text = mutated(valid, random);
    try {
      const settings::Run run = settings::parse(text);
      ASSERT_EQ(settings::parse(polyhead::config::dump(run)), run) << text;
      ++parsed;
    } catch (const polyhead::Error& error) {
      ASSERT_FALSE(std::string(error.what()).empty());
      ++refused;
    }
  }
  EXPECT_GT(parsed, 300);
  EXPECT_GT(refused, 1500);
}

TEST(Mutations, OfOverridesParseOrAreRefused) {
  const std::vector<std::string> valid{"model.heads=[2, 4]", "training.adam={betas: [0.5, 0.5], eps: 1e-3}",
                                       "name=\"x y\""};
  std::mt19937 random(2);
  for (int i = 0; i < 6000; ++i) {
    const std::string setting = mutated(valid[random() % valid.size()], random);
    EXPECT_NO_THROW(settings::message("seed: 1", {setting})) << setting;
  }
}
