#pragma once

#include <string>

#include "polyhead/config/constraint.h"

namespace polyhead::config {
class Problems;
}

namespace polyhead::text {

/// Unicode normalisation form.
enum class Normalization { none, nfc, nfkc };
inline config::EnumNames<Normalization> enum_names(Normalization) {
  return {{Normalization::none, "none"}, {Normalization::nfc, "nfc"}, {Normalization::nfkc, "nfkc"}};
}

/// How SentencePiece learns its pieces: Kudo 2018, arXiv:1804.10959 (unigram); Sennrich et al. 2016,
/// arXiv:1508.07909 (bpe).
enum class ModelType { unigram, bpe };
inline config::EnumNames<ModelType> enum_names(ModelType) {
  return {{ModelType::unigram, "unigram"}, {ModelType::bpe, "bpe"}};
}

/// The `tokenizer` section of a configuration.
struct TokenizerConfig {
  std::string kind = "sentencepiece";
  int vocab_size = 8000;
  ModelType model_type = ModelType::unigram;
  bool shared = true;
  Normalization normalization = Normalization::none;
  std::string model;
  std::string source_model;
  std::string target_model;
  bool operator==(const TokenizerConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("kind", kind, "word (white-space tokens), char (code points) or sentencepiece");
    v("vocab_size", vocab_size,
      "ids with the special ones; at most for word and char, exactly for sentencepiece", config::at_least(4));
    v("model_type", model_type, "how sentencepiece learns its pieces");
    v("shared", shared, "one vocabulary for both languages, or one each");
    v("normalization", normalization, "Unicode normalisation before tokenizing");
    v("model", model, "a SentencePiece model file for both languages instead of learning one (shared: true)");
    v("source_model", source_model, "a SentencePiece model file for the source (shared: false)");
    v("target_model", target_model, "a SentencePiece model file for the target (shared: false)");
  }
  /// `kind` is one of tokenizer_kinds(), and the models given go with `kind` and `shared`.
  void validate(config::Problems& problems) const;
};

}  // namespace polyhead::text
