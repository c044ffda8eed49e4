#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "polyhead/data/pair.h"

/// The toy translation language: a synchronous grammar of English and German whose sentences come with everything
/// that is known about them. Its rules and words are tables (src/data/grammar/).
namespace polyhead::data::grammar {

/// Of the language: it goes up with every change of any pair of any split, or of what is known about it. Results of models
/// of one version are not those of another (experiment::cell_id).
inline constexpr int version = 3;

/// What a split is for: training and choosing and testing on the same distribution (train, valid, test), one phenomenon,
/// one generalisation, or choosing settings for that.
enum class SplitKind { usual, phenomenon, generalisation, generalisation_valid };

/// A part of the language. Which split a sentence is in is a function of the sentence alone: no two splits share
/// one, whatever their seeds and sizes.
struct Split {
  std::string_view name;
  int size;  ///< as usual; a generator goes on for as long as it is asked
  SplitKind kind;
};

/// train, valid, test: 5 to 20 tokens a side, depth at most 2, at most one attractor, no held-out combination.
/// One split for each phenomenon, named as it is: sentences of the same kind that hold it.
/// length (21 to 40 tokens a side), depth (3 to 5), composition (a held-out noun × role or verb × clause) and
/// attractors (2 or 3): as train in all but that one respect. Of ten sentences of depth five have depth 3, four 4 and one 5;
/// only those of depth 5 have longer targets, of 23 to 25 tokens, as there is none of 20. Each of the six kinds of held-out
/// combinations is in a sixth of composition or more; a sentence may have several.
/// length-valid and so on: the same kind for choosing settings.
std::span<const Split> splits();
/// Their names, separated by commas.
std::string split_names();
/// Throws Error that lists the names when there is no such split.
const Split& find_split(std::string_view name);

/// The pairs of one split, one after the other; pair i is a function of (seed, split, i). No source sentence
/// occurs twice.
class Generator {
 public:
  /// Throws Error as find_split().
  Generator(std::string_view split, std::uint64_t seed);
  /// Throws DataError when no new sentence is found in many tries.
  Pair next();

 private:
  int split_;
  std::uint64_t key_, candidate_ = 0;
  std::unordered_set<std::string> seen_;
};

/// The first `size` pairs of Generator(split, seed).
std::vector<Pair> generate(std::string_view split, int size, std::uint64_t seed);

}  // namespace polyhead::data::grammar
