#include "support/any_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "polyhead/core/unicode.h"
#include "polyhead/text/pipeline.h"

namespace polyhead::text {
namespace {

using Lines = std::vector<std::string>;

/// Of every kind, learned from `lines`.
std::vector<std::shared_ptr<const Tokenizer>> tokenizers_of(const Lines& lines) {
  std::vector<std::shared_ptr<const Tokenizer>> tokenizers;
  for (const char* kind : {"word", "char", "sentencepiece"})
    for (const ModelType type : {ModelType::unigram, ModelType::bpe}) {
      TokenizerConfig config;
      config.kind = kind;
      config.model_type = type;
      config.vocab_size = config.kind == "sentencepiece" ? 130 : 10000;
      if (config.kind != "sentencepiece" && type == ModelType::bpe) continue;
      tokenizers.push_back(learn_tokenizer(config, lines));
    }
  return tokenizers;
}

/// Strange lines, and ordinary ones that a vocabulary can be learned from.
Lines training_lines() {
  Lines lines;
  for (const std::string& line : testing::strange_file_lines()) lines.push_back(Normalizer{}(line));
  for (const char* who : {"cat", "dog", "man", "woman"})
    for (const char* what : {"sits", "runs", "walks", "eats"})
      lines.push_back(std::string("the ") + who + " " + what + " on the mat in the street");
  return lines;
}

/// U+2581 stands for a space in these kinds, and comes back as one; SentencePiece drops those that a line begins with.
std::string with_spaces(std::string text, const Tokenizer& tokenizer) {
  const std::string space_piece = "\u2581";
  if (tokenizer.kind() == "word") return text;
  for (std::size_t at = 0; (at = text.find(space_piece, at)) != text.npos; ++at)
    text.replace(at, space_piece.size(), " ");
  if (tokenizer.kind() == "sentencepiece") text.erase(0, text.find_first_not_of(' '));
  return text;
}

void expect_text(const Tokenizer& tokenizer, const Lines& lines) {
  for (const std::string& line : lines) {
    const std::string text = Normalizer{}(line);
    SCOPED_TRACE(std::string(tokenizer.kind()) + ": " + text.substr(0, 100));
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    EXPECT_TRUE(std::all_of(ids.begin(), ids.end(), [&](std::int32_t id) {
      return id == unk_id || (id >= special_ids && id < tokenizer.size());
    }));
    EXPECT_EQ(tokenizer.detokenize(tokenizer.pieces(text)), with_spaces(text, tokenizer));
    const std::string decoded = tokenizer.decode(ids);
    EXPECT_TRUE(unicode::is_valid(decoded));
    const bool known = std::count(ids.begin(), ids.end(), unk_id) == 0;
    EXPECT_TRUE(!known || decoded == with_spaces(text, tokenizer)) << decoded;
  }
}

TEST(AnyText, GoesThroughTokenizersThatNeverSawIt) {
  Lines plain = training_lines();
  plain.erase(plain.begin(), plain.end() - 16);
  for (const char* kind : {"word", "char", "sentencepiece"}) {
    TokenizerConfig config;
    config.kind = kind;
    config.vocab_size = 24;
    expect_text(*learn_tokenizer(config, plain), testing::strange_file_lines());
  }
}

TEST(AnyText, GoesThroughTokenizersLearnedFromIt) {
  for (const auto& tokenizer : tokenizers_of(training_lines())) {
    expect_text(*tokenizer, training_lines());
    expect_text(*Tokenizer::deserialize(tokenizer->serialize()), training_lines());
    EXPECT_EQ(tokenizer->vocabulary().id("<s>"), unk_id);
    EXPECT_EQ(tokenizer->vocabulary().id("</s>"), unk_id);
    const Lines& pieces = tokenizer->vocabulary().pieces();
    EXPECT_EQ(std::count(pieces.begin(), pieces.end(), "</s>"), 1);
  }
}

TEST(AnyText, KeepsItsPiecesThroughALineOfPieces) {
  const Lines lines = training_lines();
  for (const char* kind : {"word", "char", "sentencepiece"}) {
    TokenizerConfig config;
    config.kind = kind;
    config.vocab_size = 130;
    const auto pipeline = TextPipeline::learn(config, false, lines, lines);
    for (const std::string& line : lines) {
      const auto ids = pipeline.encode_target(line);
      EXPECT_EQ(ids.back(), eos_id);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), eos_id), 1) << line;
      EXPECT_EQ(pipeline.ids_from_pieces(pipeline.target_pieces(ids)), ids) << kind << ": " << line;
      EXPECT_EQ(pipeline.decode_target(ids).find_first_of("\n\r"), std::string::npos);
    }
  }
}

TEST(AnyText, IsNormalisedOnce) {
  for (const Normalization form : {Normalization::none, Normalization::nfc, Normalization::nfkc})
    for (const bool lowercase : {false, true}) {
      const Normalizer normalizer{form, lowercase};
      for (const std::string& line : testing::strange_file_lines()) {
        const std::string once = normalizer(line);
        EXPECT_TRUE(unicode::is_valid(once)) << line;
        EXPECT_EQ(normalizer(once), once) << line;
        for (const char32_t c : unicode::code_points(once))
          EXPECT_TRUE(c == U' ' || !unicode::is_space(c)) << line;
      }
    }
}

}  // namespace
}  // namespace polyhead::text
