#pragma once

#include <string>
#include <vector>

#include "polyhead/data/corpus.h"
#include "polyhead/nn/transformer.h"

/// A corpus of random sentences and a model for it.
namespace polyhead::train {

inline data::ParallelCorpus tiny_corpus(int size, std::uint64_t longest) {
  RandomStream random(RngKey{17});
  data::ParallelText text;
  const auto sentence = [&] {
    std::string line = "a";
    for (std::uint64_t n = random.below(longest); n > 0; --n)
      line += std::string(" ") + static_cast<char>('a' + random.below(8));
    return line;
  };
  for (int i = 0; i < size; ++i) {
    text.source.push_back(sentence());
    text.target.push_back(sentence());
  }
  text::TokenizerConfig tokenizer;
  tokenizer.kind = "word";
  const auto pipeline = text::TextPipeline::learn(tokenizer, false, text.source, text.target);
  return data::ParallelCorpus::encode(text, pipeline, {});
}

inline nn::Transformer tiny_model(DType dtype) {
  nn::ModelConfig config;
  config.encoder_layers = 2;
  config.decoder_layers = 1;
  config.d_model = 16;
  config.heads = 4;
  config.d_ff = 24;
  config.dropout = config.attention_dropout = config.activation_dropout = 0.1;
  config.tie_embeddings = nn::TieEmbeddings::all;
  config.max_length = 64;
  nn::Transformer model(config, 12, 12);
  model.parameters().allocate(dtype);
  model.parameters().initialise(1);
  return model;
}

}  // namespace polyhead::train
