#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "polyhead/core/rng.h"
#include "polyhead/data/corpus.h"

namespace polyhead::data {

/// A sentence and its translation.
using SentencePair = std::pair<std::string, std::string>;

/// A toy task that needs no files.
struct Task {
  std::string_view name, description;
  /// One random sentence pair.
  SentencePair (*draw)(RandomStream&);
  /// How many different source sentences there are.
  std::int64_t sentences;
  /// How many sentence pairs basic(0), basic(1), ... the training split begins with, unless they are held
  /// out.
  int basics = 0;
  SentencePair (*basic)(int) = nullptr;
};

/// copy, reverse, sort: 3 to 12 words, each one of the letters a to z. numbers: English number words to
/// German ones, 0 to 999,999, short numbers more often than long ones; training has all below 1000 that are
/// not held out.
std::span<const Task> tasks();

/// The sentences of a split of `config.task`: a function of (task, sizes, seed). No source sentence occurs
/// twice, in one split or in two. The test and validation sentences do not depend on train_size. Throws Error
/// for an unknown task, DataError when the sizes together ask for more than half of the task's sentences.
ParallelText generate(const DataConfig& config, Split split, std::uint64_t seed);

/// 231 -> "two hundred thirty-one". Throws Error unless 0 <= number <= 999999.
std::string english_number(int number);
/// 231 -> "zweihunderteinunddreißig". Throws Error unless 0 <= number <= 999999.
std::string german_number(int number);

}  // namespace polyhead::data
