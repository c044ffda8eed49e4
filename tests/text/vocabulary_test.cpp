#include "polyhead/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "polyhead/core/error.h"
#include "support/message.h"

namespace polyhead::text {
namespace {

using ::testing::ElementsAre;
using testing::message_of;

TEST(Vocabulary, BeginsWithTheSpecialPieces) {
  const Vocabulary vocabulary({"cat", "sat"});
  EXPECT_THAT(vocabulary.pieces(), ElementsAre("<unk>", "<s>", "</s>", "cat", "sat"));
  EXPECT_EQ(vocabulary.id("cat"), 3);
  EXPECT_EQ(vocabulary.id("sat"), 4);
  EXPECT_EQ(vocabulary.id("dog"), unk_id);
  EXPECT_EQ(vocabulary.piece(4), "sat");
}

TEST(Vocabulary, TextNeverYieldsSpecialIds) {
  const Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.id("</s>"), unk_id);
  EXPECT_EQ(vocabulary.id("<s>"), unk_id);
  EXPECT_EQ(vocabulary.size(), 3);
}

TEST(Vocabulary, KeepsTheMostFrequentWithTiesInCodePointOrder) {
  const std::unordered_map<std::string, std::int64_t> counts = {
      {"b", 2}, {"a", 2}, {"\U0001F600", 2}, {"\uFFFD", 2}, {"z", 5}, {"rare", 1}, {"</s>", 9}};
  EXPECT_THAT(Vocabulary::most_frequent(counts, 100).pieces(),
              ElementsAre("<unk>", "<s>", "</s>", "z", "a", "b", "\uFFFD", "\U0001F600", "rare"));
  EXPECT_THAT(Vocabulary::most_frequent(counts, 5).pieces(), ElementsAre("<unk>", "<s>", "</s>", "z", "a"));
  EXPECT_EQ(message_of<Error>([&] { Vocabulary::most_frequent(counts, 3); }),
            "tokenizer.vocab_size: 3 leaves no room beside the 3 special pieces");
}

TEST(Vocabulary, RefusesPiecesThatAreNotOneToOne) {
  EXPECT_EQ(message_of<DataError>([] {
              Vocabulary({"a", "b", "a"});
            }),
            "vocabulary: the piece \"a\" has two ids, 3 and 5");
  EXPECT_EQ(message_of<DataError>([] {
              Vocabulary({"a", ""});
            }),
            "vocabulary: id 4 has the piece \"\", which is empty or reserved");
  EXPECT_EQ(message_of<DataError>([] { Vocabulary({"<s>"}); }),
            "vocabulary: id 3 has the piece \"<s>\", which is empty or reserved");
}

TEST(Vocabulary, RefusesIdsOutside) {
  const Vocabulary vocabulary({"a"});
  EXPECT_EQ(message_of<DataError>([&] { vocabulary.piece(4); }), "vocabulary: id 4 is not in 0 to 3");
  EXPECT_EQ(message_of<DataError>([&] { vocabulary.piece(-1); }), "vocabulary: id -1 is not in 0 to 3");
}

}  // namespace
}  // namespace polyhead::text
