#pragma once

#include <optional>

#include "data/grammar/phenomena.h"

/// How probes() works: its two files are phenomena.cpp (words and noun phrases) and clause_phenomena.cpp.
namespace polyhead::data::grammar {

inline int finite_verb(const Node& clause) {
  return clause.child(clause.compound ? Role::auxiliary : Role::verb);
}
inline bool is_noun(const Node& node) { return node.word == WordKind::noun || node.word == WordKind::name; }
inline bool is_weak(const Node& node) {
  return node.word == WordKind::noun && nouns()[static_cast<std::size_t>(node.lexeme)].weak;
}
inline Number other(Number number) { return number == Number::singular ? Number::plural : Number::singular; }
/// Nouns and names between the two words whose number is not the subject's.
int attractors_between(const Tree& tree, const Side& target, int subject, int verb);

/// Finds what one target tests.
class Finder {
 public:
  Finder(const Tree& tree, const Side& target) : tree_(tree), target_(target) {}
  std::vector<Probe> find();

 private:
  /// Hosts are the nouns whose phrases the node is in, up to its clause; `governed`: by a preposition.
  void visit(int index, int clause, std::vector<int> hosts = {}, bool governed = false);
  /// A relative clause at the end may be moved away from its noun, and be of any before it.
  void add_earlier_nouns(int clause, std::vector<int>& hosts) const;
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
  /// The form of another case, or of another gender that no form of the right gender equals. `hosts`: nouns that the
  /// relative clause can follow, which the wrong form must not fit: "the prince beside a queen who".
  void add_relative(int clause, const std::vector<int>& hosts);
  /// "dem gut ist": who feels well.
  bool is_good(int clause) const;
  /// "who helps Anna" and "whom Anna helps": names and plurals have the same form in both cases. Where German is spoken in the
  /// south one also calls ("anrufen") in the dative.
  bool may_govern_dative(int clause) const;
  void add_pronoun(int index, int clause);
  /// Whether a relative clause is the last of what is not a clause of its own: then it could be a main clause whose pronoun
  /// is a demonstrative, "..., der hat gelacht".
  bool is_last(int relative_clause) const;
  /// A relative clause of pronoun and verb that is_last(): in a main clause they are in the same order.
  bool may_be_main(int relative_clause) const;

  // Noun phrases.

  void visit_noun_phrase(int phrase, int clause, bool governed);
  /// Whether article and noun go together in a case: in any, without one.
  static bool fits(std::string_view article, Determiner determiner, const Node& noun, std::optional<Case> c);
  /// `governed`: by a preposition, so that no other case can be meant.
  void add_article(int determiner, int noun, int clause, bool governed);

  // Clauses.

  void visit_clause(int clause, const std::vector<int>& hosts);
  /// The first of two main clauses whose second is `clause`; else null.
  const Node* first_before(int clause) const;
  /// The second of two clauses, after one with a modal verb, which can govern an infinitive in the second too: "Emma kann
  /// Anna anrufen und ich lachen".
  bool follows_modal(int clause) const;
  /// The same, or after a subordinate clause, which the second can go on: "weil sie gut ist und in einer Stadt Peter schläft".
  bool follows_verb_last(int clause) const;
  /// "in den Gärten der Lehrer ...": of the teachers.
  bool may_be_genitive(int clause) const;
  void add_agreement(int clause, const std::vector<int>& hosts);
  /// Whether a relative clause with a verb in `number` could be of another of the nouns that it can follow.
  bool may_be_of_host(int clause, Number number, const std::vector<int>& hosts) const;
  /// Whether the clause with a verb in `number` could be read with the object as its subject, as German order allows.
  bool may_change_places(int clause, Number number) const;
  int head_of(int phrase) const {
    return tree_[phrase].kind == Kind::word ? phrase : tree_[phrase].child(Role::noun);
  }
  /// Whether the phrase has the same words in another case.
  bool has_form_of(int phrase, Case c) const;
  /// The object with kein in place of the definite article and nicht, or the other way round: right German, but not
  /// what the source says. nicht in another place, and nicht before an indefinite article, can be meant.
  void add_negation(int clause);
  void add_opposition(int clause);
  void add_attachment(int clause);
  /// Whether a place beside the verb can be in either case.
  bool takes_either_case(int clause) const;
  /// Where it is in place of where it goes, or the other way round.
  void add_wrong_case(int phrase, int cue, int clause);
  void add_verb_sense(int clause, const std::vector<int>& hosts);
  bool is_located(int phrase) const;
  /// Whether one may "wissen" the object: some noun or other ("einen Arzt"), who is where, or what "es" or "sie" is.
  bool may_be_known_as_fact(int clause) const;

  const Tree& tree_;
  const Side& target_;
  std::vector<Probe> found_;
};

}  // namespace polyhead::data::grammar
