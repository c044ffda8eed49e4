#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "polyhead/core/rng.h"
#include "polyhead/data/corpus.h"
#include "polyhead/data/pair.h"

namespace polyhead::data {

/// A task that needs no files.
struct Task {
  std::string_view name;
  /// One random pair; null: all pairs are from the grammar (data/grammar/grammar.h).
  Pair (*draw)(RandomStream&);
  /// About how many different source sentences there are, at least.
  std::int64_t sentences;
  /// How many pairs basic(0), basic(1), ... the training split begins with, unless they are held out.
  int basics = 0;
  Pair (*basic)(int) = nullptr;
};

/// grammar: the toy translation language.
/// numbers: English number words to German ones, 0 to 999,999, short numbers more often than long ones; training has
/// all below 1000 that are not held out.
/// copy, reverse, sort: 3 to 12 letters; each target token has one source token that it is.
/// recall: 3 to 10 times a letter and a digit, then one of the letters: its digit. An induction head (Olsson et al.
/// 2022, arXiv:2209.11895).
/// dyck: 8 to 20 brackets of two kinds: those that close the open ones, from the last. A stack.
/// nearest: 5 to 12 of 64 points in 8 dimensions: which of them is nearest to the last. One head needs a head_dim of
/// about the dimension (Amsel, Yehudai & Bruna 2024, arXiv:2407.16153).
std::span<const Task> tasks();

/// The pairs of a split of a toy task.
int size_of(const DataConfig& config, Split split);

/// Gives the pairs of a split of `config.task` to `take`, one after the other: a function of (task, sizes, seed). No
/// source sentence occurs twice, in one split or in two. The test and validation sentences do not depend on
/// train_size. Throws Error for an unknown task, DataError when the sizes together ask for more than half of the
/// task's sentences.
void each_pair(const DataConfig& config, Split split, std::uint64_t seed,
               const std::function<void(Pair&&)>& take);

/// The sentences of each_pair().
ParallelText generate(const DataConfig& config, Split split, std::uint64_t seed);

/// 231 -> "two hundred thirty-one". Throws Error unless 0 <= number <= 999999.
std::string english_number(int number);
/// 231 -> "zweihunderteinunddreißig". Throws Error unless 0 <= number <= 999999.
std::string german_number(int number);

}  // namespace polyhead::data
