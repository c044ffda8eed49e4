#pragma once

#include <optional>

#include "data/grammar/phenomena.h"

/// How probes() works: its two files are phenomena.cpp (words and noun phrases) and clause_phenomena.cpp.
namespace polyhead::data::grammar {

inline int finite_verb(const Node& clause) {
  return clause.child(clause.compound ? Role::auxiliary : Role::verb);
}
inline bool is_noun(const Node& node) { return node.word == WordKind::noun || node.word == WordKind::name; }
inline Number other(Number number) { return number == Number::singular ? Number::plural : Number::singular; }
/// Nouns and names between the two words whose number is not the subject's.
int attractors_between(const Tree& tree, const Side& target, int subject, int verb);

/// Finds what one target tests.
class Finder {
 public:
  Finder(const Tree& tree, const Side& target) : tree_(tree), target_(target) {}
  std::vector<Probe> find();

 private:
  void visit(int index, int clause, bool governed = false);
  int where(int node) const { return node < 0 ? -1 : target_.where[static_cast<std::size_t>(node)]; }
  /// Adds a probe unless the changed tree has the same words.
  Probe* add(Phenomenon phenomenon, int word, int cue, int clause, const Tree& changed);
  template <class Change>
  Probe* add_changed(Phenomenon phenomenon, int word, int cue, int clause, const Change& change) {
    Tree changed = tree_;
    change(changed);
    return add(phenomenon, word, cue, clause, changed);
  }

  // Words.

  void visit_word(int index, int clause);
  void add_name(int index, int clause);
  /// A form of another gender that no form of the right gender equals, or the form of another case.
  void add_relative(int index, int clause);
  /// "who helps Anna" and "whom Anna helps": names and plurals have the same form in both cases.
  bool has_dative_verb(int clause) const;
  void add_pronoun(int index, int clause);

  // Noun phrases.

  void visit_noun_phrase(int phrase, int clause, bool governed);
  /// Whether article and noun go together in a case: in any, without one.
  static bool fits(std::string_view article, Determiner determiner, const Node& noun, std::optional<Case> c);
  /// `governed`: by a preposition, so that no other case can be meant.
  void add_article(int determiner, int noun, int clause, bool governed);

  // Clauses.

  void visit_clause(int clause);
  void add_agreement(int clause);
  /// Whether the clause with a verb in `number` could be read with the object as its subject, as German order allows.
  bool may_change_places(int clause, Number number) const;
  int head_of(int phrase) const {
    return tree_[phrase].kind == Kind::word ? phrase : tree_[phrase].child(Role::noun);
  }
  /// Whether the phrase has the same words in another case.
  bool has_form_of(int phrase, Case c) const;
  void add_kein(int clause);
  void add_opposition(int clause);
  void add_attachment(int clause);
  /// Whether a phrase before the object would be next to the subject, and could be of that.
  bool is_beside_subject(int clause) const;
  /// Where it is in place of where it goes, or the other way round.
  void add_wrong_case(int phrase, int cue, int clause);
  void add_verb_sense(int clause);

  const Tree& tree_;
  const Side& target_;
  std::vector<Probe> found_;
};

}  // namespace polyhead::data::grammar
