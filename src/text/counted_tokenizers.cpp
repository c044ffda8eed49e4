#include <unordered_map>

#include "frame.h"
#include "kinds.h"
#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"

namespace polyhead::text {
namespace {

std::string pack_pieces(const Vocabulary& vocabulary) {
  std::string packed;
  for (std::int32_t id = special_ids; id < vocabulary.size(); ++id) packed += counted(vocabulary.piece(id));
  return packed;
}

Vocabulary unpack_pieces(std::string_view bytes) {
  std::vector<std::string> pieces;
  for (Reader reader(bytes); !reader.done();) pieces.emplace_back(reader.text());
  return Vocabulary(pieces);
}

class WordTokenizer final : public Tokenizer {
 public:
  explicit WordTokenizer(Vocabulary vocabulary) : Tokenizer(std::move(vocabulary)) {}
  std::string_view kind() const override { return "word"; }
  std::vector<std::string> pieces(std::string_view text) const override { return unicode::split(text); }
  std::string detokenize(const std::vector<std::string>& words) const override {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  }
  std::string bytes() const override { return pack_pieces(vocabulary()); }
};

class CharTokenizer final : public Tokenizer {
 public:
  explicit CharTokenizer(Vocabulary vocabulary) : Tokenizer(std::move(vocabulary)) {}
  std::string_view kind() const override { return "char"; }
  std::vector<std::string> pieces(std::string_view text) const override {
    std::vector<std::string> characters = unicode::characters(text);
    for (std::string& character : characters) {
      if (character == " ") character = space_piece;
    }
    return characters;
  }
  std::string detokenize(const std::vector<std::string>& characters) const override {
    std::string text;
    for (const std::string& character : characters) text += character == space_piece ? " " : character;
    return text;
  }
  std::string bytes() const override { return pack_pieces(vocabulary()); }
};

template <class Kind>
std::unique_ptr<Tokenizer> learn(const TokenizerConfig& config, const std::vector<std::string>& lines) {
  const Kind cutter{Vocabulary()};
  std::unordered_map<std::string, std::int64_t> counts;
  for (const std::string& line : lines) {
    for (std::string& piece : cutter.pieces(line)) ++counts[std::move(piece)];
  }
  require<DataError>(!counts.empty(), "tokenizer: no text to learn a vocabulary from (", lines.size(),
                     " lines)");
  return std::make_unique<Kind>(Vocabulary::most_frequent(counts, config.vocab_size));
}

template <class Kind>
std::unique_ptr<Tokenizer> load(std::string_view bytes) {
  return std::make_unique<Kind>(unpack_pieces(bytes));
}

}  // namespace

std::unique_ptr<Tokenizer> learn_word(const TokenizerConfig& config, const std::vector<std::string>& lines) {
  return learn<WordTokenizer>(config, lines);
}
std::unique_ptr<Tokenizer> load_word(std::string_view bytes) { return load<WordTokenizer>(bytes); }

std::unique_ptr<Tokenizer> learn_char(const TokenizerConfig& config, const std::vector<std::string>& lines) {
  return learn<CharTokenizer>(config, lines);
}
std::unique_ptr<Tokenizer> load_char(std::string_view bytes) { return load<CharTokenizer>(bytes); }

}  // namespace polyhead::text
