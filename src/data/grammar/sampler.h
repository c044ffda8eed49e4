#pragma once

#include <array>

#include "data/grammar/tree.h"
#include "polyhead/core/rng.h"

namespace polyhead::data::grammar {

/// How likely the choices of a derivation are, in percent.
struct Profile {
  int coordinated;  ///< two sentences joined by and
  int complement;   ///< a clausal verb
  int reason;       ///< an adverbial clause
  int relative;     ///< a relative clause after a noun
  int attribute;    ///< a prepositional phrase after a noun
  int adjective;    ///< an adjective before a noun, and another before that
  int name;         ///< a name for a person
  int past;         ///< English past tense, German perfect
  int modal;        ///< can or must
  int plural;
  int max_depth;
  bool held_out;  ///< whether combinations may occur that training never sees
};

/// A set of held-out combinations: of nouns and where they stand, of verbs and the clause that they are in.
using Combinations = unsigned;
inline constexpr std::array<Combinations, 6> combinations{1, 2, 4, 8, 16, 32};

/// A random derivation, and the held-out combinations that it holds.
struct Derivation {
  Tree tree;
  Combinations held_out = 0;
};
/// With a combination that is `wanted`, where the profile allows them, more often.
Derivation sample(const Profile& profile, RandomStream& random, Combinations wanted = 0);

}  // namespace polyhead::data::grammar
