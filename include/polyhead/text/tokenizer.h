#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/text/config.h"
#include "polyhead/text/vocabulary.h"

namespace polyhead::text {

/// Cuts normalised text (Normalizer) into pieces of a fixed vocabulary and puts it together again.
/// detokenize(pieces(text)) == text for normalised text (U+2581, which stands for the space, comes back as a
/// space from the kinds that use it; a SentencePiece model from elsewhere may normalise further).
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// The name of the kind in tokenizer_kinds().
  virtual std::string_view kind() const = 0;
  /// The pieces of `text`; what the vocabulary lacks stays as it is spelled.
  virtual std::vector<std::string> pieces(std::string_view text) const = 0;
  /// Plain text of `pieces`.
  virtual std::string detokenize(const std::vector<std::string>& pieces) const = 0;
  /// The bytes from which the kind's `load` makes the same tokenizer.
  virtual std::string bytes() const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::int32_t size() const { return vocabulary_.size(); }
  /// The ids of pieces(text), without bos or eos; unk_id where the vocabulary lacks a piece.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The pieces of `ids` without <s> and </s>. Throws DataError for an id outside the vocabulary.
  std::vector<std::string> pieces_of(std::span<const std::int32_t> ids) const;
  /// Plain text of `ids`: unknown pieces as unknown_surface, bos and eos as nothing.
  std::string decode(std::span<const std::int32_t> ids) const;

  /// The tokenizer with its kind, behind a digest.
  std::string serialize() const;
  /// Throws FileError when `serialized` is not exactly what serialize() wrote.
  static std::unique_ptr<Tokenizer> deserialize(std::string_view serialized);

 protected:
  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

 private:
  Vocabulary vocabulary_;
};

/// One kind of tokenizer: `learn` makes it from normalised training lines, `load` from its bytes().
struct TokenizerKind {
  std::string_view name;
  std::unique_ptr<Tokenizer> (*learn)(const TokenizerConfig&, const std::vector<std::string>& lines);
  std::unique_ptr<Tokenizer> (*load)(std::string_view bytes);
};

/// word: white-space tokens. char: one code point a piece, the space as U+2581. Both keep the most frequent
/// `vocab_size` pieces. sentencepiece: the library, exactly `vocab_size` pieces.
std::span<const TokenizerKind> tokenizer_kinds();

/// Learns the tokenizer of `config.kind`. Throws DataError when the text cannot give such a vocabulary, Error
/// for an unknown kind.
std::unique_ptr<Tokenizer> learn_tokenizer(const TokenizerConfig& config,
                                           const std::vector<std::string>& lines);
/// A SentencePiece model file. Throws FileError when it cannot be read or is no model, DataError unless its
/// ids of unk, bos and eos are 0, 1 and 2 (the library's defaults).
std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path);

}  // namespace polyhead::text
