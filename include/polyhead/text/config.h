#pragma once

#include <string>

namespace polyhead::text {

/// Unicode normalisation form.
enum class Normalization { none, nfc, nfkc };

/// How SentencePiece learns its pieces: Kudo 2018, arXiv:1804.10959 (unigram); Sennrich et al. 2016,
/// arXiv:1508.07909 (bpe).
enum class ModelType { unigram, bpe };

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
};

}  // namespace polyhead::text
