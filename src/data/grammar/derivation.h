#pragma once

#include <algorithm>

#include "data/grammar/sampler.h"
#include "polyhead/core/error.h"

/// How sample() works: its three files are sampler.cpp (clauses), noun_phrases.cpp and predicates.cpp (what the verb of a
/// clause takes).
namespace polyhead::data::grammar {

/// What a noun phrase has to be.
struct Slot {
  unsigned classes;
  Case grammatical_case;
  Place place;
  int depth;                       ///< of the clause that it is in
  int level = 0;                   ///< prepositional phrases that it is in
  bool names = true;               ///< may be a name
  bool modified = true;            ///< may have attributes and relative clauses
  std::string_view excluded = {};  ///< the instrument of the verb, which would be taken for one
  std::string_view only = {};      ///< the one noun that it can be
};

/// Builds one derivation.
class Sampler {
 public:
  Sampler(const Profile& profile, RandomStream& random, Combinations wanted)
      : p_(profile), random_(random), wanted_(wanted) {}
  Derivation sample();

 private:
  Tree& tree() { return result_.tree; }
  Node& node(int index) { return result_.tree[index]; }
  bool chance(int percent) { return below(100) < percent; }
  int below(std::size_t n) { return static_cast<int>(random_.below(n)); }

  /// A row that `fits`, each with the same probability.
  template <class Row, class Fits>
  std::int16_t pick(std::span<const Row> table, const Fits& fits) {
    int count = 0;
    for (const Row& row : table) count += fits(row) ? 1 : 0;
    require(count > 0, "grammar: no word fits");
    int left = below(static_cast<std::size_t>(count));
    for (std::size_t i = 0;; ++i)
      if (fits(table[i]) && left-- == 0) return static_cast<std::int16_t>(i);
  }

  /// The same, without rows that training never has at `position` unless the profile allows them, and more often one of
  /// these where it is wanted.
  template <class Row, class Position, class Fits>
  std::int16_t pick_allowed(std::span<const Row> table, Position position, const Fits& fits) {
    const auto held_out = [&](const Row& row) { return row.held_out == position; };
    const auto rare = [&](const Row& row) { return held_out(row) && fits(row); };
    const bool wanted =
        (combination(position) & wanted_) != 0 && chance(50) && std::any_of(table.begin(), table.end(), rare);
    const auto picked =
        wanted ? pick(table, rare)
               : pick(table, [&](const Row& row) { return fits(row) && (p_.held_out || !held_out(row)); });
    if (held_out(table[static_cast<std::size_t>(picked)])) result_.held_out |= combination(position);
    return picked;
  }
  static Combinations combination(Place held_out);
  static Combinations combination(ClauseKind held_out);

  std::int16_t word(WordKind kind, int lexeme = -1) {
    Node leaf;
    leaf.word = kind;
    leaf.lexeme = static_cast<std::int16_t>(lexeme);
    return tree().add(leaf);
  }

  std::int16_t fixed(std::string_view english, std::string_view german) {
    const auto leaf = word(WordKind::fixed);
    node(leaf).english = english;
    node(leaf).german = german;
    return leaf;
  }

  // Noun phrases.

  std::int16_t noun_phrase(const Slot& slot);
  /// One that the sentence has not yet.
  int unused_name();
  void add_noun(int phrase, std::int16_t lexeme, const Slot& slot);
  int attribute_preposition(const Noun& host, const Slot& slot);
  void add_attribute(int host, int preposition, unsigned classes, const Slot& slot);
  std::int16_t prepositional_phrase(int preposition, const Slot& inner);
  std::int16_t pronoun(Gender gender, Number number, Case c, Person who = Person::third);

  // Clauses.

  std::int16_t new_clause(ClauseKind kind, int depth);
  std::int16_t main_clause();

  /// A verb of a clause of some kind; a clausal one as often as the profile says.
  template <class Fits>
  std::int16_t pick_verb(ClauseKind kind, const Fits& fits, int depth) {
    const bool clausal = kind != ClauseKind::relative && depth < p_.max_depth && chance(p_.complement);
    return pick_allowed(verbs(), kind,
                        [&](const Verb& v) { return clausal ? v.frame == Frame::clausal : fits(v); });
  }

  /// What is before the finite verb in place of the subject.
  void add_front(int clause, int verb);
  void embed(int clause, std::int16_t mark);
  std::int16_t complement_clause(int depth);
  /// With `it` for the object of the clause `before` where that has one it can be.
  std::int16_t adverbial_clause(int depth, int before);
  int possible_antecedent(int clause);
  void add_it(int clause, int antecedent);
  std::int16_t relative_clause(int antecedent, int depth);

  // What every clause has.

  /// `subject`: its phrase, or a relative pronoun in its place, or -1 for a new one.
  void finish(int clause, int verb, int subject);
  std::int16_t new_subject(int clause, const Verb& v);
  /// `open`: the object is not the relative pronoun.
  void add_objects(int clause, const Verb& v, bool open);
  void add_place(int clause, Case c, int depth);
  bool has_relative(int index);
  void add_adverb(int clause);
  void add_verbs(int clause, int verb, int subject, Auxiliary auxiliary);
  void add_particle(int clause, std::int16_t main_leaf);
  static std::string_view helper_of_negation(const Node& features);
  /// not: kein in an indefinite object, else nicht.
  void negate(int clause);
  /// "not the dog but the cat".
  void oppose(int clause, const Verb& v);

  const Profile& p_;
  RandomStream& random_;
  const Combinations wanted_;
  Derivation result_;
};

}  // namespace polyhead::data::grammar
