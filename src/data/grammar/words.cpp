#include "data/grammar/tree.h"

/// The form of a word on either side, from its features.
namespace polyhead::data::grammar {
namespace {

template <class Row>
const Row& row(std::span<const Row> table, const Node& node) {
  return table[static_cast<std::size_t>(node.lexeme)];
}

bool third_singular(const Node& node) {
  return node.person == Person::third && node.number == Number::singular;
}

std::string_view english_pronoun(const Node& node) {
  const bool plural = node.number == Number::plural, subject = node.grammatical_case == Case::nominative;
  if (node.person == Person::first) return plural ? "we" : "I";
  if (node.cue >= 0) return "it";  // its gender is that of its German antecedent
  if (plural) return subject ? "they" : "them";
  if (node.gender == Gender::feminine) return subject ? "she" : "her";
  return subject ? "he" : "him";
}

std::string_view english_relative(const Node& node) {
  if ((nouns()[static_cast<std::size_t>(node.lexeme)].classes & person) == 0) return "that";
  return node.grammatical_case == Case::nominative ? "who" : "whom";
}

std::string_view english_auxiliary(const Node& node) {
  switch (node.auxiliary_verb) {
    case Auxiliary::can:
      return "can";
    case Auxiliary::must:
      return "must";
    case Auxiliary::be:
      if (!node.copula) break;  // of a German perfect
      if (node.number == Number::plural) return "are";
      return node.person == Person::first ? "am" : "is";
    case Auxiliary::have:
    case Auxiliary::none:
      break;
  }
  return node.english;  // did, do, does or nothing
}

std::string_view english_verb(const Node& node) {
  const Verb& verb = row(verbs(), node);
  if (node.base) return verb.english;
  if (node.past) return verb.english_past;
  return third_singular(node) ? verb.english_third : verb.english;
}

}  // namespace

std::string_view english_word(const Node& node) {
  if (node.german_only) return "";
  switch (node.word) {
    case WordKind::determiner:
      if (node.determiner == Determiner::definite) return "the";
      return node.number == Number::singular && node.determiner != Determiner::none ? "a" : "";
    case WordKind::adjective:
    case WordKind::predicate:
      return row(adjectives(), node).first;
    case WordKind::noun:
      return node.number == Number::plural ? row(nouns(), node).english_plural : row(nouns(), node).english;
    case WordKind::name:
      return row(names(), node).word;
    case WordKind::pronoun:
      return english_pronoun(node);
    case WordKind::relative:
      return english_relative(node);
    case WordKind::preposition:
      return row(prepositions(), node).english;
    case WordKind::auxiliary:
      return english_auxiliary(node);
    case WordKind::verb:
      return english_verb(node);
    case WordKind::particle:
      return row(verbs(), node).english_particle;
    case WordKind::negation:
      return "not";
    case WordKind::subordinator:
      return node.lexeme < 0 ? "that" : row(subordinators(), node).first;
    case WordKind::adverb:
      return row(adverbs(), node).english;
    case WordKind::fixed:
      break;
  }
  return node.english;
}

std::string_view german_word(const Node& node) {
  if (node.english_only) return "";
  switch (node.word) {
    case WordKind::determiner:
      return german_article(node.determiner, node.gender, node.number, node.grammatical_case);
    case WordKind::adjective:
      return german_adjective(node.lexeme, node.determiner, node.gender, node.number, node.grammatical_case);
    case WordKind::predicate:
      return german_adjective(node.lexeme);
    case WordKind::noun:
      return german_noun(node.lexeme, node.number, node.grammatical_case);
    case WordKind::name:
      return row(names(), node).word;
    case WordKind::pronoun:
      return german_pronoun(node.person, node.gender, node.number, node.grammatical_case);
    case WordKind::relative:
      return german_relative(node.gender, node.number, node.grammatical_case);
    case WordKind::preposition:
      return row(prepositions(), node).german;
    case WordKind::auxiliary:
      return german_auxiliary(node.auxiliary_verb, node.person, node.number);
    case WordKind::verb:
      return german_verb(node.lexeme, node.form, node.person, node.number, node.joined);
    case WordKind::particle:
      return node.german.empty() ? row(verbs(), node).particle : node.german;
    case WordKind::negation:
      return "nicht";
    case WordKind::subordinator:
      return node.lexeme < 0 ? "dass" : row(subordinators(), node).second;
    case WordKind::adverb:
      return row(adverbs(), node).german;
    case WordKind::fixed:
      break;
  }
  return node.german;
}

}  // namespace polyhead::data::grammar
