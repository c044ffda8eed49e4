#pragma once

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

/// A random derivation, and whether it holds a held-out combination.
struct Derivation {
  Tree tree;
  bool held_out = false;
};
Derivation sample(const Profile& profile, RandomStream& random);

}  // namespace polyhead::data::grammar
