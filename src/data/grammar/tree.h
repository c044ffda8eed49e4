#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/grammar/lexicon.h"

/// Derivations of the toy language: one tree for both sides, which rules (rules.h) put in order.
namespace polyhead::data::grammar {

/// What a child is to its parent. Rules name roles as role_names does.
enum class Role : std::uint8_t {
  first,
  conjunction,
  second,
  end,  // of a sentence
  open,
  mark,
  front,
  subject,
  auxiliary,
  verb,
  particle,
  negation,
  clitic,  // of a clause
  object,
  instrument,
  place,
  adverb,
  complement,
  reason,
  close,
  determiner,
  adjective,
  further_adjective,
  noun,
  attribute,
  relative,
  comma,
  other,  // of a noun phrase
  preposition,
  inner  // of a prepositional phrase
};
inline constexpr std::array<std::string_view, 30> role_names{"first",
                                                             "conjunction",
                                                             "second",
                                                             "end",
                                                             "open",
                                                             "mark",
                                                             "front",
                                                             "subject",
                                                             "auxiliary",
                                                             "verb",
                                                             "particle",
                                                             "negation",
                                                             "clitic",
                                                             "object",
                                                             "instrument",
                                                             "place",
                                                             "adverb",
                                                             "complement",
                                                             "reason",
                                                             "close",
                                                             "determiner",
                                                             "adjective",
                                                             "further_adjective",
                                                             "noun",
                                                             "attribute",
                                                             "relative",
                                                             "comma",
                                                             "other",
                                                             "preposition",
                                                             "inner"};

enum class Kind : std::uint8_t { sentence, clause, noun_phrase, prepositional_phrase, word };

enum class WordKind : std::uint8_t {
  determiner,
  adjective,
  predicate,
  noun,
  name,
  pronoun,
  relative,
  preposition,
  auxiliary,
  verb,
  particle,
  negation,
  subordinator,
  adverb,
  fixed
};

/// How the German words of a clause are ordered: as they should be, or as one of the wrong orders that contrasts have.
enum class Order : std::uint8_t {
  main,
  inverted,
  subordinate,
  finite_early,  // wrong verb_final
  finite_late,   // wrong inversion
  main_participle_early,
  inverted_participle_early,  // wrong bracket
  instrument_early            // wrong attachment
};

/// A phrase, or a word whose form on either side follows from its features. A plain value: a contrast is a copy of the
/// tree with a feature changed.
struct Node {
  Kind kind = Kind::word;
  WordKind word = WordKind::fixed;
  Gender gender = Gender::masculine;
  Case grammatical_case = Case::nominative;
  Number number = Number::singular;
  Person person = Person::third;
  Determiner determiner = Determiner::none;
  VerbForm form = VerbForm::finite;
  Auxiliary auxiliary_verb = Auxiliary::none;
  ClauseKind clause = ClauseKind::none;
  Order order = Order::main;
  bool compound = false;  ///< clause: the finite verb is an auxiliary
  bool past = false;      ///< clause and its verbs
  bool joined = false;    ///< verb: with its particle
  bool base = false;      ///< verb: in English without an ending, after can or does
  bool copula = false;    ///< auxiliary: of a predicate, so that English has it too
  bool english_only = false, german_only = false;
  std::int16_t depth = 0;     ///< clause: how many it is embedded in
  std::int16_t lexeme = -1;   ///< row of the word's table
  std::int16_t partner = -1;  ///< word: which it is aligned with where it has no form of its own on one side
  bool sure_partner = false;
  std::int16_t cue = -1;  ///< word that decides this one's form: antecedent of a pronoun, subject of a verb
  std::string_view label = {};                 ///< dependency label in place of its role's
  std::string_view english = {}, german = {};  ///< fixed words
  std::array<std::int16_t, role_names.size()> children{};

  std::int16_t child(Role role) const { return children[static_cast<std::size_t>(role)]; }
  bool has(Role role) const { return child(role) >= 0; }
  Node() { children.fill(-1); }
};

/// The nodes of a derivation.
struct Tree {
  std::vector<Node> nodes;
  int root = -1;  ///< the sentence
  Node& operator[](int i) { return nodes[static_cast<std::size_t>(i)]; }
  const Node& operator[](int i) const { return nodes[static_cast<std::size_t>(i)]; }
  std::int16_t add(const Node& node) {
    nodes.push_back(node);
    return static_cast<std::int16_t>(nodes.size() - 1);
  }
  void set(int parent, Role role, std::int16_t child) {
    (*this)[parent].children[static_cast<std::size_t>(role)] = child;
  }
};

std::string_view english_word(const Node& node);
std::string_view german_word(const Node& node);

}  // namespace polyhead::data::grammar
