#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "polyhead/data/pair.h"

namespace polyhead::tools {

/// What is in one split of the toy language.
struct GrammarStatistics {
  std::string split;
  std::int64_t pairs = 0;
  std::array<std::int64_t, data::phenomenon_names.size()> phenomena{};  ///< pairs that hold them
  std::map<std::size_t, std::int64_t> source_lengths, target_lengths;   ///< pairs by tokens
  std::map<int, std::int64_t> depths, attractors;                       ///< pairs
  std::map<int, std::int64_t> distances;                                ///< of subjects and their verbs
  std::map<std::string, std::int64_t> source_words, target_words;

  void add(const data::Pair& pair);
};

/// For people: a table of phenomena by split, then counts of lengths, depths, attractors, distances and words.
std::string statistics_table(const std::vector<GrammarStatistics>& splits);
/// The same counts as one JSON object by split, and a line end.
std::string statistics_json(const std::vector<GrammarStatistics>& splits);

}  // namespace polyhead::tools
