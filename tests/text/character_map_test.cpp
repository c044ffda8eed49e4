#include "text/character_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstring>
#include <vector>

#include "polyhead/core/error.h"
#include "support/message.h"
#include "text/kinds.h"

namespace polyhead::text {
namespace {

using testing::message_of;

/// A field of Protocol Buffers that holds bytes.
std::string field(int number, const std::string& bytes) {
  std::string result(1, static_cast<char>(number << 3 | 2));
  for (std::size_t size = bytes.size(); result.size() == 1 || size > 0; size >>= 7)
    result += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
  return result + bytes;
}

std::string map_of(const std::vector<std::uint32_t>& units, const std::string& texts) {
  std::string map(4 + 4 * units.size(), '\0');
  const auto size = static_cast<std::uint32_t>(4 * units.size());
  std::memcpy(map.data(), &size, 4);
  if (!units.empty()) std::memcpy(map.data() + 4, units.data(), size);
  return map + texts;
}

std::string error_of(const std::string& map, int normalizer = 3) {
  return message_of<FileError>(
      [&] { check_character_maps(field(1, "piece") + field(normalizer, field(2, map))); });
}

constexpr const char* sound = "nothing thrown";
constexpr const char* damaged_model = "damaged SentencePiece model";

/// A trie that takes 'a' to the text at `value`: its root has base 256, the node of 'a' base 512.
std::vector<std::uint32_t> trie(std::uint32_t value) {
  std::vector<std::uint32_t> units(768, 0x80000000);  // no byte is their label
  units[0] = 256U << 10;
  units[256 ^ 'a'] = ((256U ^ 'a' ^ 512U) << 10) | 1U << 8 | 'a';
  units[512] = 0x80000000 | value;
  return units;
}

TEST(CharacterMap, TakesWhatStaysInside) {
  EXPECT_EQ(error_of(map_of(trie(0), std::string("b\0", 2))), sound);
  EXPECT_EQ(error_of(map_of(trie(1), std::string("b\0", 2))), sound);
  EXPECT_EQ(error_of(""), sound);
}

TEST(CharacterMap, RefusesWhatLeadsOutside) {
  for (const int normalizer : {3, 5}) {
    EXPECT_EQ(error_of(map_of(trie(2), std::string("b\0", 2)), normalizer), damaged_model)
        << "a value behind the texts";
    EXPECT_EQ(error_of(map_of(trie(0), "b"), normalizer), damaged_model) << "a text without an end";
    EXPECT_EQ(error_of(map_of(trie(0), ""), normalizer), damaged_model) << "no texts";
    EXPECT_EQ(error_of(map_of({}, std::string("b\0", 2)), normalizer), damaged_model) << "no units";
    EXPECT_EQ(error_of("\xff\xff\xff\xff maps", normalizer), damaged_model) << "a size of 4 GiB";
    auto units = trie(0);
    units[0] = 768U << 10;
    EXPECT_EQ(error_of(map_of(units, std::string("b\0", 2)), normalizer), damaged_model)
        << "a root behind the end";
    units = trie(0);
    units[256 ^ 'a'] |= 0x7fffU << 16;
    EXPECT_EQ(error_of(map_of(units, std::string("b\0", 2)), normalizer), damaged_model)
        << "a node behind the end";
    units = trie(0);
    units.resize(600);
    EXPECT_EQ(error_of(map_of(units, std::string("b\0", 2)), normalizer), damaged_model) << "half a block";
  }
}

TEST(CharacterMap, RefusesOtherMessages) {
  for (const std::string& model :
       {std::string("\x0a"), std::string("\x0a\x05xyz"), std::string("\x0b"), std::string(11, '\xff'),
        std::string("\x09 1234"), std::string("\x0d 12"), std::string("\x08\xff")})
    EXPECT_EQ(message_of<FileError>([&] { check_character_maps(model); }), damaged_model);
  // A number that is field 3 to whoever drops its upper bits.
  EXPECT_EQ(message_of<FileError>([] { check_character_maps("\x9a\x80\x80\x80\x10\x02\x12\x00"); }),
            damaged_model);
}

TEST(CharacterMap, CirclesEnd) {
  auto units = trie(0);
  units[256 ^ 'a'] = ('a' << 10) | 'a';  // back to the root's base
  EXPECT_EQ(error_of(map_of(units, std::string("b\0", 2))), sound);
}

class SameLine final : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return lines_ == 0; }
  void Next() override { --lines_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  int lines_ = 20;
  std::string line_ = "the cat sat on the mat";
};

// The library's own tables, with every rule of NFKC.
TEST(CharacterMap, TakesTheLibrarysTables) {
  SameLine lines;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train({{"vocab_size", "18"},
                                                                  {"hard_vocab_limit", "false"},
                                                                  {"normalization_rule_name", "nfkc"},
                                                                  {"minloglevel", "3"}},
                                                                 &lines, &model);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_GT(model.size(), 100000U);
  const auto tokenizer = parse_sentencepiece(model);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ｔｈｅ ｃａｔ")), "the cat");
}

}  // namespace
}  // namespace polyhead::text
