#include <algorithm>

#include "data/grammar/derivation.h"

namespace polyhead::data::grammar {

std::int16_t Sampler::noun_phrase(const Slot& slot) {
  Node phrase;
  phrase.kind = Kind::noun_phrase;
  phrase.grammatical_case = slot.grammatical_case;
  const auto result = tree().add(phrase);
  if ((slot.classes & person) != 0 && slot.names && chance(p_.name)) {
    const auto name = word(WordKind::name, unused_name());
    node(name).grammatical_case = slot.grammatical_case;
    node(name).gender = names()[static_cast<std::size_t>(node(name).lexeme)].gender;
    tree().set(result, Role::noun, name);
    return result;
  }
  const auto lexeme = pick_allowed(nouns(), slot.place, [&](const Noun& n) {
    return (n.classes & slot.classes) != 0 && n.english != slot.excluded &&
           (slot.only.empty() || n.english == slot.only) &&
           (n.context == 0 || (slot.level == 0 && slot.modified));
  });
  add_noun(result, lexeme, slot);
  const Noun& noun = nouns()[static_cast<std::size_t>(lexeme)];
  if (noun.context != 0) {
    add_attribute(result, preposition_row("in"), noun.context, slot);
  } else if (slot.modified && slot.level < 3 && chance(p_.attribute)) {
    add_attribute(result, attribute_preposition(noun, slot), 0, slot);
  } else if (slot.modified && slot.depth < p_.max_depth && chance(p_.relative)) {
    tree().set(result, Role::relative, relative_clause(node(result).child(Role::noun), slot.depth + 1));
  }
  return result;
}

int Sampler::unused_name() {
  std::vector<int> unused;
  for (int i = 0; i < static_cast<int>(names().size()); ++i)
    if (std::none_of(tree().nodes.begin(), tree().nodes.end(),
                     [&](const Node& n) { return n.word == WordKind::name && n.lexeme == i; }))
      unused.push_back(i);
  return unused.empty() ? below(names().size()) : unused[static_cast<std::size_t>(below(unused.size()))];
}

void Sampler::add_noun(int phrase, std::int16_t lexeme, const Slot& slot) {
  const Noun& noun = nouns()[static_cast<std::size_t>(lexeme)];
  Node features;
  features.gender = noun.gender;
  features.grammatical_case = slot.grammatical_case;
  features.number = chance(p_.plural) ? Number::plural : Number::singular;
  features.determiner = chance(60) ? Determiner::definite : Determiner::indefinite;
  const auto add = [&](Role role, WordKind kind, int row) {
    features.word = kind;
    features.lexeme = static_cast<std::int16_t>(row);
    tree().set(phrase, role, tree().add(features));
  };
  add(Role::determiner, WordKind::determiner, -1);
  if (chance(p_.adjective)) {
    const int first = below(adjectives().size());
    add(Role::adjective, WordKind::adjective, first);
    if (chance(p_.adjective))
      add(Role::further_adjective, WordKind::adjective,
          (first + 1 + below(adjectives().size() - 1)) % static_cast<int>(adjectives().size()));
  }
  add(Role::noun, WordKind::noun, lexeme);
}

int Sampler::attribute_preposition(const Noun& host, const Slot& slot) {
  return pick(prepositions(), [&](const Preposition& p) {
    return (p.hosts & host.classes) != 0 && (p.nouns != carried || slot.level == 0);
  });
}

void Sampler::add_attribute(int host, int preposition, unsigned classes, const Slot& slot) {
  const unsigned allowed =
      classes != 0 ? classes : prepositions()[static_cast<std::size_t>(preposition)].nouns;
  Slot inner{allowed, Case::dative, Place::prepositional, slot.depth, slot.level + 1, false};
  inner.excluded = slot.excluded;
  tree().set(host, Role::attribute, prepositional_phrase(preposition, inner));
}

std::int16_t Sampler::prepositional_phrase(int preposition, const Slot& inner) {
  Node phrase;
  phrase.kind = Kind::prepositional_phrase;
  phrase.lexeme = static_cast<std::int16_t>(preposition);
  const auto result = tree().add(phrase);
  tree().set(result, Role::preposition, word(WordKind::preposition, preposition));
  tree().set(result, Role::inner, noun_phrase(inner));
  return result;
}

std::int16_t Sampler::pronoun(Gender gender, Number number, Case c, Person who) {
  const auto leaf = word(WordKind::pronoun);
  node(leaf).gender = gender;
  node(leaf).number = number;
  node(leaf).grammatical_case = c;
  node(leaf).person = who;
  Node phrase;
  phrase.kind = Kind::noun_phrase;
  phrase.grammatical_case = c;
  const auto result = tree().add(phrase);
  tree().set(result, Role::noun, leaf);
  return result;
}

}  // namespace polyhead::data::grammar
