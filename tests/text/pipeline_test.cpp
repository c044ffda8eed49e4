#include "polyhead/text/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <filesystem>
#include <fstream>

#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"

namespace polyhead::text {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> english = {"The cat sat", "the cat"};
const std::vector<std::string> german = {"Die Katze saß", "die Katze"};

TokenizerConfig words(bool shared) {
  TokenizerConfig config;
  config.kind = "word";
  config.shared = shared;
  return config;
}

TEST(TextPipeline, SeparateVocabularies) {
  const auto pipeline = TextPipeline::learn(words(false), true, english, german);
  EXPECT_FALSE(pipeline.shared());
  EXPECT_THAT(pipeline.source().vocabulary().pieces(),
              ElementsAre("<unk>", "<s>", "</s>", "cat", "the", "sat"));
  EXPECT_THAT(pipeline.target().vocabulary().pieces(),
              ElementsAre("<unk>", "<s>", "</s>", "die", "katze", "saß"));
  EXPECT_THAT(pipeline.encode_source(" THE\u2028Cat "), ElementsAre(4, 3, eos_id));
  EXPECT_THAT(pipeline.encode_target("saß die Katze"), ElementsAre(5, 3, 4, eos_id));
  EXPECT_THAT(pipeline.encode_source("Katze"), ElementsAre(unk_id, eos_id));
}

TEST(TextPipeline, SharedVocabulary) {
  const auto pipeline = TextPipeline::learn(words(true), true, english, german);
  EXPECT_TRUE(pipeline.shared());
  EXPECT_THAT(pipeline.target().vocabulary().pieces(),
              ElementsAre("<unk>", "<s>", "</s>", "cat", "die", "katze", "the", "sat", "saß"));
  EXPECT_THAT(pipeline.encode_source("Katze"), ElementsAre(5, eos_id));
}

TEST(TextPipeline, CaseIsKeptUnlessLowered) {
  const auto pipeline = TextPipeline::learn(words(false), false, english, german);
  EXPECT_EQ(pipeline.decode_target(pipeline.encode_target("Die Katze")), "Die Katze");
  EXPECT_EQ(pipeline.decode_target(pipeline.encode_target("DIE Katze")), "\u2047 Katze");
}

TEST(TextPipeline, EmptyLines) {
  const auto pipeline = TextPipeline::learn(words(false), true, english, german);
  EXPECT_THAT(pipeline.encode_source(""), ElementsAre(eos_id));
  EXPECT_THAT(pipeline.encode_target(" \t"), ElementsAre(eos_id));
  EXPECT_EQ(pipeline.decode_target(std::vector<std::int32_t>{eos_id}), "");
}

TEST(TextPipeline, PiecesAndBack) {
  TokenizerConfig config;
  config.kind = "char";
  const auto pipeline = TextPipeline::learn(config, false, english, german);
  const auto ids = pipeline.encode_target("die a");
  EXPECT_EQ(pipeline.target_pieces(ids), "d i e \u2581 a");
  EXPECT_EQ(pipeline.ids_from_pieces("d i e \u2581 a"), ids);
  EXPECT_EQ(pipeline.decode_target(ids), "die a");
  EXPECT_THAT(pipeline.ids_from_pieces("</s> nothing"), ElementsAre(unk_id, unk_id, eos_id));
  EXPECT_THAT(pipeline.ids_from_pieces(pipeline.target_pieces(std::vector<std::int32_t>{unk_id, eos_id})),
              ElementsAre(unk_id, eos_id));
  EXPECT_THAT(pipeline.ids_from_pieces(""), ElementsAre(eos_id));
}

TEST(TextPipeline, PiecesOfWhatWasCutSaySo) {
  const auto pipeline = TextPipeline::learn(words(false), true, english, german);
  const std::vector<std::int32_t> cut{4, 3};
  EXPECT_EQ(pipeline.target_pieces(cut), "katze die <s>");
  EXPECT_EQ(pipeline.ids_from_pieces("katze die <s>"), cut);
  EXPECT_EQ(pipeline.target_pieces({}), "");
}

TEST(TextPipeline, CropsToPiecesAndEos) {
  std::vector<std::int32_t> ids{5, 6, 7, eos_id};
  EXPECT_FALSE(crop(ids, 3));
  EXPECT_THAT(ids, ElementsAre(5, 6, 7, eos_id));
  EXPECT_TRUE(crop(ids, 2));
  EXPECT_THAT(ids, ElementsAre(5, 6, eos_id));
}

TEST(TextPipeline, DecodesToOneLine) {
  const std::string path = std::filesystem::path(::testing::TempDir()) / "polyhead_bytes.spm";
  std::ofstream(path) << "the cat sat on the mat\na dog ran\n";
  const std::string settings =
      " --byte_fallback=true --vocab_size=300 --hard_vocab_limit=false --minloglevel=3";
  std::string model;
  ASSERT_TRUE(sentencepiece::SentencePieceTrainer::Train("--input=" + path + settings, nullptr, &model).ok());
  std::ofstream(path, std::ios::binary) << model;
  TokenizerConfig given;
  given.model = path;
  const auto pipeline = TextPipeline::learn(given, false, {}, {});
  std::filesystem::remove(path);
  auto ids = pipeline.encode_target("cat");
  ids.pop_back();
  for (const char* byte : {"<0x0A>", "<0x0D>", "<0x0A>"}) {
    ids.push_back(pipeline.target().vocabulary().id(byte));
    ASSERT_NE(ids.back(), unk_id);
  }
  ids.push_back(pipeline.target().vocabulary().id("a"));
  EXPECT_EQ(pipeline.decode_target(ids), "cat   a");
}

TEST(TextPipeline, RefusesIdsOfNoPiece) {
  const auto pipeline = TextPipeline::learn(words(false), true, english, german);
  EXPECT_THROW(pipeline.decode_target(std::vector<std::int32_t>{6}), DataError);
}

TEST(TextPipeline, BehavesTheSameAfterSerialisation) {
  for (const bool shared : {false, true}) {
    const auto pipeline = TextPipeline::learn(words(shared), true, english, german);
    const std::string bytes = pipeline.serialize();
    const auto copy = TextPipeline::deserialize(bytes);
    EXPECT_EQ(copy.shared(), shared);
    EXPECT_EQ(copy.normalizer(), pipeline.normalizer());
    EXPECT_EQ(copy.serialize(), bytes);
    EXPECT_EQ(copy.encode_source("THE cat"), pipeline.encode_source("THE cat"));
    EXPECT_EQ(copy.encode_target("DIE Katze"), pipeline.encode_target("DIE Katze"));
  }
}

TEST(TextPipeline, NoticesEveryDamagedByte) {
  const std::string whole = TextPipeline::learn(words(false), true, english, german).serialize();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(~damaged[i]);
    EXPECT_THROW(TextPipeline::deserialize(damaged), FileError) << i;
    EXPECT_THROW(TextPipeline::deserialize(whole.substr(0, i)), FileError) << i;
  }
}

TEST(TextPipeline, UsesGivenModels) {
  std::vector<std::string> lines = english;
  lines.insert(lines.end(), german.begin(), german.end());
  TokenizerConfig learned;
  learned.vocab_size = 20;
  const auto tokenizer = learn_tokenizer(learned, lines);
  const std::string path = std::filesystem::path(::testing::TempDir()) / "polyhead_given.spm";
  std::ofstream(path, std::ios::binary) << tokenizer->bytes();

  TokenizerConfig given;
  given.model = path;
  const auto shared = TextPipeline::learn(given, false, {}, {});
  EXPECT_TRUE(shared.shared());
  EXPECT_EQ(shared.source().bytes(), tokenizer->bytes());

  TokenizerConfig two;
  two.shared = false;
  two.source_model = two.target_model = path;
  const auto separate = TextPipeline::learn(two, false, {}, {});
  EXPECT_FALSE(separate.shared());
  EXPECT_EQ(separate.target().bytes(), tokenizer->bytes());
  std::filesystem::remove(path);
}

std::string problem(const std::string& yaml) {
  try {
    config::parse<TokenizerConfig>(yaml, "t.yaml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TokenizerConfig, RoundTripsAsYaml) {
  const auto config = config::parse<TokenizerConfig>(
      "{kind: char, vocab_size: 77, model_type: bpe, shared: false, normalization: nfkc}", "t.yaml");
  EXPECT_EQ(config.kind, "char");
  EXPECT_EQ(config.vocab_size, 77);
  EXPECT_EQ(config.model_type, ModelType::bpe);
  EXPECT_FALSE(config.shared);
  EXPECT_EQ(config.normalization, Normalization::nfkc);
  EXPECT_EQ(config::parse<TokenizerConfig>(config::dump(config), "t.yaml"), config);
}

TEST(TokenizerConfig, SaysWhatDoesNotGoTogether) {
  EXPECT_EQ(problem("kind: wrod"), "t.yaml:1: kind: \"wrod\", expected one of word, char, sentencepiece");
  EXPECT_EQ(problem("{kind: word, model: a.spm}"), "t.yaml:1: model: needs kind sentencepiece, not word");
  EXPECT_EQ(problem("source_model: a.spm"), "t.yaml:1: source_model: needs shared: false");
  EXPECT_EQ(problem("{shared: false, model: a.spm}"), "t.yaml:1: model: needs shared: true");
}

}  // namespace
}  // namespace polyhead::text
