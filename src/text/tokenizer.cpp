#include "polyhead/text/tokenizer.h"

#include "frame.h"
#include "kinds.h"
#include "polyhead/core/error.h"

namespace polyhead::text {
namespace {

constexpr TokenizerKind kinds[] = {
    {"word", learn_word, load_word},
    {"char", learn_char, load_char},
    {"sentencepiece", learn_sentencepiece, parse_sentencepiece},
};
constexpr std::string_view tokenizer_tag = "polyhead tokenizer 1\n";

const TokenizerKind* find_kind(std::string_view name) {
  for (const TokenizerKind& kind : kinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace

std::span<const TokenizerKind> tokenizer_kinds() { return kinds; }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  for (const std::string& piece : pieces(text)) ids.push_back(vocabulary_.id(piece));
  return ids;
}

std::vector<std::string> Tokenizer::pieces_of(std::span<const std::int32_t> ids) const {
  std::vector<std::string> result;
  for (const std::int32_t id : ids) {
    const std::string& piece = vocabulary_.piece(id);
    if (id != bos_id && id != eos_id) result.push_back(piece);
  }
  return result;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::vector<std::string> text = pieces_of(ids);
  for (std::string& piece : text) {
    if (piece == special_pieces[unk_id]) piece = unknown_surface;
  }
  return detokenize(text);
}

std::string Tokenizer::serialize() const { return frame(tokenizer_tag, counted(kind()) + counted(bytes())); }

std::unique_ptr<Tokenizer> Tokenizer::deserialize(std::string_view serialized) {
  Reader reader(unframe(tokenizer_tag, serialized));
  const std::string_view name = reader.text();
  const TokenizerKind* kind = find_kind(name);
  require<FileError>(kind != nullptr, "stored vocabulary: unknown kind of tokenizer \"", name, "\"");
  return kind->load(reader.text());
}

std::unique_ptr<Tokenizer> learn_tokenizer(const TokenizerConfig& config,
                                           const std::vector<std::string>& lines) {
  const TokenizerKind* kind = find_kind(config.kind);
  require(kind != nullptr, "tokenizer.kind: \"", config.kind, "\" is none of word, char, sentencepiece");
  return kind->learn(config, lines);
}

}  // namespace polyhead::text
