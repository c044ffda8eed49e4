#pragma once

#include <string_view>
#include <vector>

#include "data/grammar/tree.h"
#include "polyhead/data/pair.h"

namespace polyhead::data::grammar {

/// The words of one side in order. Arrays run over tokens, but where[] over the nodes of the tree: the token of a word,
/// or -1.
struct Side {
  std::vector<std::string_view> tokens;
  std::vector<std::int16_t> nodes;
  Dependencies tree;
  std::vector<int> where;
};

Side english(const Tree& tree);
Side german(const Tree& tree);
/// The German words alone, into `tokens`.
std::vector<std::string> german_tokens(const Tree& tree);

std::vector<Link> align(const Tree& tree, const Side& source, const Side& target);

}  // namespace polyhead::data::grammar
