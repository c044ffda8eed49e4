#include "random_pairs.h"

#include <algorithm>

#include "polyhead/core/rng.h"

namespace polyhead::tools {
namespace {

using Lines = std::vector<std::string>;

/// "a0", "a1" ...: every ordinary piece of a vocabulary of `size` ids.
Lines vocabulary_words(std::int32_t size) {
  Lines words;
  for (std::int32_t i = text::special_ids; i < size; ++i) words.push_back("a" + std::to_string(i));
  return words;
}

Lines random_lines(const Lines& words, std::int64_t lines, std::int64_t length, RngKey key) {
  RandomStream random(key);
  Lines result(static_cast<std::size_t>(lines));
  for (std::string& line : result)
    for (std::int64_t i = 0; i < length; ++i) line += words[random.below(words.size())] + ' ';
  return result;
}

}  // namespace

void allow_length(train::Config& config, std::int64_t length) {
  config.model.max_length = std::max(config.model.max_length, static_cast<int>(length));
  config.data.max_length = std::max(config.data.max_length, static_cast<int>(length));
}

train::TrainingData random_pairs(const train::Config& config, std::int64_t length, std::int64_t batches) {
  const std::int64_t batch_tokens = std::int64_t{config.training.batch_tokens} * config.training.accumulate;
  const std::int64_t pairs = batches * std::max<std::int64_t>(1, batch_tokens / length);
  const Lines words = vocabulary_words(config.tokenizer.vocab_size);
  const RngKey key = RngKey{config.seed}.fold("bench/random_pairs");
  const data::ParallelText text{"random words", random_lines(words, pairs, length - 1, key.fold("source")),
                                random_lines(words, pairs, length - 1, key.fold("target"))};
  text::TokenizerConfig tokenizer;
  tokenizer.kind = "word";
  tokenizer.vocab_size = config.tokenizer.vocab_size;
  tokenizer.shared = config.tokenizer.shared;
  text::TextPipeline pipeline = text::TextPipeline::learn(tokenizer, false, words, words);
  data::ParallelCorpus corpus = data::ParallelCorpus::encode(text, pipeline, train::training_filter(config));
  return {std::move(pipeline), std::move(corpus)};
}

}  // namespace polyhead::tools
