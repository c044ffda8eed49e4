#include "polyhead/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"
#include "polyhead/text/normalizer.h"
#include "support/message.h"

namespace polyhead::text {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;

TokenizerConfig config(std::string kind, int vocab_size, ModelType type = ModelType::unigram) {
  TokenizerConfig result;
  result.kind = std::move(kind);
  result.vocab_size = vocab_size;
  result.model_type = type;
  return result;
}

std::vector<std::string> small_text() {
  std::vector<std::string> lines = {"the cat sat", "the dog ran", "ein Hund läuft über die Straße", ""};
  for (const char* who : {"cat", "dog", "man", "woman", "Hund"}) {
    for (const char* what : {"sits", "runs", "walks", "eats", "läuft"}) {
      lines.push_back(std::string("the ") + who + " " + what + " on the mat");
      lines.push_back(std::string("a ") + what + " " + who + " is in the street");
    }
  }
  return lines;
}

std::vector<TokenizerConfig> every_kind() {
  return {config("word", 1000), config("char", 1000), config("sentencepiece", 39),
          config("sentencepiece", 39, ModelType::bpe)};
}

TEST(WordTokenizer, CutsAtWhiteSpace) {
  const auto tokenizer = learn_tokenizer(config("word", 5), {"the cat sat", "the cat", "the"});
  EXPECT_THAT(tokenizer->vocabulary().pieces(), ElementsAre("<unk>", "<s>", "</s>", "the", "cat"));
  EXPECT_THAT(tokenizer->pieces("the sat\u2028cat"), ElementsAre("the", "sat", "cat"));
  const auto ids = tokenizer->encode("the sat cat");
  EXPECT_THAT(ids, ElementsAre(3, unk_id, 4));
  EXPECT_EQ(tokenizer->decode(ids), "the \u2047 cat");
  EXPECT_EQ(tokenizer->kind(), "word");
}

TEST(CharTokenizer, CutsIntoCodePoints) {
  const auto tokenizer = learn_tokenizer(config("char", 100), {"aß a", "😀"});
  EXPECT_THAT(tokenizer->vocabulary().pieces(), ElementsAre("<unk>", "<s>", "</s>", "a", "ß", "\u2581", "😀"));
  const auto ids = tokenizer->encode("ß a😀x");
  EXPECT_THAT(ids, ElementsAre(4, 5, 3, 6, unk_id));
  EXPECT_EQ(tokenizer->decode(ids), "ß a😀\u2047");
  EXPECT_THAT(tokenizer->pieces_of(ids), ElementsAre("ß", "\u2581", "a", "😀", "<unk>"));
}

TEST(SentencePiece, HasExactlyTheSizeAskedForAndOurSpecialIds) {
  for (const auto type : {ModelType::unigram, ModelType::bpe}) {
    const auto tokenizer = learn_tokenizer(config("sentencepiece", 39, type), small_text());
    EXPECT_EQ(tokenizer->size(), 39);
    EXPECT_EQ(tokenizer->vocabulary().piece(unk_id), "<unk>");
    EXPECT_EQ(tokenizer->vocabulary().piece(bos_id), "<s>");
    EXPECT_EQ(tokenizer->vocabulary().piece(eos_id), "</s>");
  }
}

TEST(SentencePiece, LearnsTheSameBytesEveryTime) {
  for (const auto type : {ModelType::unigram, ModelType::bpe}) {
    const auto settings = config("sentencepiece", 39, type);
    EXPECT_EQ(learn_tokenizer(settings, small_text())->bytes(),
              learn_tokenizer(settings, small_text())->bytes());
  }
}

TEST(SentencePiece, NamesTheLargestAndSmallestVocabulary) {
  for (const auto type : {ModelType::unigram, ModelType::bpe}) {
    const std::string too_many =
        message_of<DataError>([&] { learn_tokenizer(config("sentencepiece", 5000, type), small_text()); });
    const std::string head =
        "tokenizer.vocab_size: 5000 is more pieces than the training text gives; at most ";
    ASSERT_THAT(too_many, StartsWith(head));
    const int most = std::stoi(too_many.substr(head.size()));
    EXPECT_EQ(learn_tokenizer(config("sentencepiece", most, type), small_text())->size(), most);

    const std::string too_few =
        message_of<DataError>([&] { learn_tokenizer(config("sentencepiece", 10, type), small_text()); });
    const std::string low_head =
        "tokenizer.vocab_size: 10 is less than the characters of the training text; at least ";
    ASSERT_THAT(too_few, StartsWith(low_head));
    const int least = std::stoi(too_few.substr(low_head.size()));
    EXPECT_EQ(learn_tokenizer(config("sentencepiece", least, type), small_text())->size(), least);
  }
}

TEST(SentencePiece, KeepsRareCharactersAndLongLines) {
  std::vector<std::string> lines = small_text();
  std::string longest = "ÿ";
  for (int i = 0; i < 3000; ++i) longest += " cat";
  lines.push_back(longest);
  const auto tokenizer = learn_tokenizer(config("sentencepiece", 39), lines);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ÿ cat")), "ÿ cat");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(longest)), longest);
}

TEST(SentencePiece, LearnsFromAWordOfAMegabyte) {
  std::string word;
  for (int i = 0; i < 500'000; ++i) word += "é";
  std::vector<std::string> lines = small_text();
  lines.push_back("the " + word + " ends");
  for (const auto type : {ModelType::unigram, ModelType::bpe}) {
    const auto tokenizer = learn_tokenizer(config("sentencepiece", 45, type), lines);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(lines.back())), lines.back());
  }
}

TEST(SentencePiece, ControlPiecesInTextAreText) {
  const auto tokenizer = learn_tokenizer(config("sentencepiece", 39), small_text());
  EXPECT_THAT(tokenizer->encode("the </s> cat <s>"), ::testing::Not(::testing::Contains(eos_id)));
  EXPECT_THAT(tokenizer->encode("the </s> cat <s>"), ::testing::Not(::testing::Contains(bos_id)));
}

TEST(SentencePiece, ReadsModelFiles) {
  const auto folder = std::filesystem::path(::testing::TempDir());
  const auto tokenizer = learn_tokenizer(config("sentencepiece", 39), small_text());
  const std::string path = folder / "polyhead_model.spm";
  std::ofstream(path, std::ios::binary) << tokenizer->bytes();
  EXPECT_EQ(load_sentencepiece(path)->encode("the cat sat"), tokenizer->encode("the cat sat"));

  EXPECT_EQ(message_of<FileError>([] { load_sentencepiece("no/such.spm"); }),
            "tokenizer model \"no/such.spm\": cannot be read or is empty");
  EXPECT_EQ(message_of<FileError>([&] { load_sentencepiece(folder); }),
            "tokenizer model \"" + folder.string() + "\": cannot be read or is empty");
  EXPECT_EQ(message_of<FileError>([] { load_sentencepiece("/dev/zero"); }),
            "tokenizer model \"/dev/zero\": not a regular file");
  const std::string pipe = folder / "polyhead_pipe.spm";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message_of<FileError>([&] { load_sentencepiece(pipe); }),
            "tokenizer model \"" + pipe + "\": not a regular file");
  std::filesystem::remove(pipe);
  std::filesystem::resize_file(path, 100'000'000);
  EXPECT_EQ(message_of<FileError>([&] { load_sentencepiece(path); }),
            "tokenizer model \"" + path + "\": larger than 67108864 bytes");
  std::ofstream(path, std::ios::binary) << "no model";
  EXPECT_THAT(message_of<FileError>([&] { load_sentencepiece(path); }),
              StartsWith(path + ": not a SentencePiece model ("));
  std::filesystem::remove(path);
}

TEST(Tokenizer, RoundTripsItsOwnText) {
  for (const TokenizerConfig& settings : every_kind()) {
    const auto tokenizer = learn_tokenizer(settings, small_text());
    for (const std::string& line : small_text()) {
      EXPECT_EQ(tokenizer->detokenize(tokenizer->pieces(line)), line) << settings.kind;
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(line)), line) << settings.kind;
    }
  }
}

TEST(Tokenizer, UnknownPiecesKeepTheirSpellingAsPieces) {
  for (const TokenizerConfig& settings : every_kind()) {
    const auto tokenizer = learn_tokenizer(settings, small_text());
    const std::string line = "the 猫 sat </s> x";
    EXPECT_EQ(tokenizer->detokenize(tokenizer->pieces(line)), line) << settings.kind;
    EXPECT_THAT(tokenizer->decode(tokenizer->encode("the 猫 sat")),
                AllOf(StartsWith("the "), HasSubstr("\u2047")));
    EXPECT_THAT(tokenizer->encode(line), ::testing::Contains(unk_id)) << settings.kind;
  }
}

TEST(Tokenizer, EmptyTextHasNoPieces) {
  for (const TokenizerConfig& settings : every_kind()) {
    const auto tokenizer = learn_tokenizer(settings, small_text());
    EXPECT_TRUE(tokenizer->encode("").empty());
    EXPECT_EQ(tokenizer->decode({}), "");
    EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{bos_id, eos_id}), "");
  }
}

TEST(Tokenizer, BehavesTheSameAfterSerialisation) {
  for (const TokenizerConfig& settings : every_kind()) {
    const auto tokenizer = learn_tokenizer(settings, small_text());
    const auto copy = Tokenizer::deserialize(tokenizer->serialize());
    EXPECT_EQ(copy->kind(), tokenizer->kind());
    EXPECT_EQ(copy->vocabulary().pieces(), tokenizer->vocabulary().pieces());
    EXPECT_EQ(copy->serialize(), tokenizer->serialize());
    for (const std::string& line : small_text()) EXPECT_EQ(copy->encode(line), tokenizer->encode(line));
  }
}

TEST(Tokenizer, NoticesEveryDamagedByteAndEveryCut) {
  for (const TokenizerConfig& settings : {config("word", 20), config("sentencepiece", 39)}) {
    const std::string whole = learn_tokenizer(settings, small_text())->serialize();
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
      EXPECT_THROW(Tokenizer::deserialize(damaged), FileError) << i;
      EXPECT_THROW(Tokenizer::deserialize(whole.substr(0, i)), FileError) << i;
    }
    EXPECT_EQ(message_of<FileError>([&] { Tokenizer::deserialize(whole + "x"); }),
              "stored vocabulary: bytes after its end");
  }
}

TEST(Tokenizer, NeedsText) {
  EXPECT_EQ(message_of<DataError>([] {
              learn_tokenizer(config("word", 10), {"", ""});
            }),
            "tokenizer: no text to learn a vocabulary from (2 lines)");
  EXPECT_EQ(message_of<DataError>([] {
              learn_tokenizer(config("sentencepiece", 10), {"", "", ""});
            }),
            "tokenizer: no text to learn a vocabulary from (3 lines)");
  EXPECT_EQ(message_of<Error>([] { learn_tokenizer(config("wrod", 10), {"a"}); }),
            "tokenizer.kind: \"wrod\" is none of word, char, sentencepiece");
}

}  // namespace
}  // namespace polyhead::text
