#pragma once

#include "data/grammar/rules.h"
#include "data/grammar/tree.h"
#include "polyhead/data/pair.h"

namespace polyhead::data::grammar {

/// Subjects and their finite verbs, over all clauses.
struct Agreement {
  int attractors = 0;  ///< the most of one subject and verb
  int distance = 0;    ///< the longest
};
Agreement agreement(const Tree& tree, const Side& target);

/// Most clauses one in another.
int depth(const Tree& tree);

/// All phenomena of a target, by slot. A place where the wrong form could be right too has none.
std::vector<Probe> probes(const Tree& tree, const Side& target);

}  // namespace polyhead::data::grammar
