#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "polyhead/core/rng.h"
#include "polyhead/data/corpus.h"

namespace polyhead::data {

/// A toy task that needs no files: `draw` makes one random sentence pair.
struct Task {
  std::string_view name, description;
  std::pair<std::string, std::string> (*draw)(RandomStream&);
};

/// copy, reverse, sort: 3 to 12 one-letter words. numbers: English number words to German ones, 0 to 999,999.
std::span<const Task> tasks();

/// The sentences of a split of `config.task`: a function of (task, sizes, seed). No source sentence occurs
/// twice, in one split or in two. The test and validation sentences do not depend on train_size. Throws Error
/// for an unknown task, DataError when the task has too few different sentences for the sizes.
ParallelText generate(const DataConfig& config, Split split, std::uint64_t seed);

/// 231 -> "two hundred thirty-one". Throws Error unless 0 <= number <= 999999.
std::string english_number(int number);
/// 231 -> "zweihunderteinunddreißig". Throws Error unless 0 <= number <= 999999.
std::string german_number(int number);

}  // namespace polyhead::data
