#include "data/grammar/sampler.h"

#include "data/grammar/derivation.h"

namespace polyhead::data::grammar {

Derivation Sampler::sample() {
  Node sentence;
  sentence.kind = Kind::sentence;
  const auto first = main_clause();
  std::int16_t conjunction = -1, second = -1;
  if (chance(p_.coordinated)) {
    conjunction = fixed("and", "und");
    second = main_clause();
  }
  const auto end = fixed(".", ".");
  const auto root = tree().add(sentence);
  tree().root = root;
  tree().set(root, Role::first, first);
  tree().set(root, Role::conjunction, conjunction);
  tree().set(root, Role::second, second);
  tree().set(root, Role::end, end);
  return std::move(result_);
}

std::int16_t Sampler::new_clause(ClauseKind kind, int depth) {
  Node clause;
  clause.kind = Kind::clause;
  clause.clause = kind;
  clause.depth = static_cast<std::int16_t>(depth);
  clause.order = kind == ClauseKind::main ? Order::main : Order::subordinate;
  clause.past = chance(p_.past);
  return tree().add(clause);
}

std::int16_t Sampler::main_clause() {
  const auto clause = new_clause(ClauseKind::main, 0);
  const std::int16_t verb = pick_verb(
      ClauseKind::main, [](const Verb& v) { return v.frame != Frame::clausal; }, 0);
  finish(clause, verb, -1);
  add_front(clause, verb);
  // Where `it` can be, more often: it is the only place for pronouns whose gender is not said.
  const int reason = possible_antecedent(clause) >= 0 ? 2 * p_.reason : p_.reason / 2;
  if (!node(clause).has(Role::front) && !node(clause).has(Role::complement) && p_.max_depth > 0 &&
      chance(reason))
    tree().set(clause, Role::reason, adverbial_clause(1, clause));
  return clause;
}

void Sampler::add_front(int clause, int verb) {
  const Verb& v = verbs()[static_cast<std::size_t>(verb)];
  const int kind = below(100);
  if (kind < 15 && node(clause).has(Role::adverb)) {
    tree().set(clause, Role::front, node(clause).child(Role::adverb));
    tree().set(clause, Role::adverb, -1);
  } else if (kind >= 15 && kind < 30 && v.frame != Frame::directed && v.frame != Frame::copula &&
             !node(clause).has(Role::place)) {
    const Slot inner{place, Case::dative, Place::prepositional, 0, 1, false, false};
    const auto phrase = prepositional_phrase(preposition_row("in"), inner);
    node(phrase).label = "obl";
    tree().set(clause, Role::front, phrase);
  } else if (kind >= 30 && chance(p_.reason / 2) && !node(clause).has(Role::complement) && p_.max_depth > 0) {
    const auto fronted = adverbial_clause(1, -1);
    node(fronted).label = "advcl";
    node(node(fronted).child(Role::close)).english = ",";
    tree().set(clause, Role::front, fronted);
  }
  if (node(clause).has(Role::front)) node(clause).order = Order::inverted;
}

void Sampler::embed(int clause, std::int16_t mark) {
  tree().set(clause, Role::open, fixed("", ","));
  tree().set(clause, Role::mark, mark);
  tree().set(clause, Role::close, fixed("", ","));
}

std::int16_t Sampler::complement_clause(int depth) {
  const auto clause = new_clause(ClauseKind::complement, depth);
  embed(clause, word(WordKind::subordinator));
  const auto verb = pick_verb(
      ClauseKind::complement, [](const Verb& v) { return v.frame != Frame::clausal; }, depth);
  finish(clause, verb, -1);
  return clause;
}

std::int16_t Sampler::adverbial_clause(int depth, int before) {
  const auto clause = new_clause(ClauseKind::adverbial, depth);
  embed(clause, word(WordKind::subordinator, below(subordinators().size())));
  const int antecedent = before < 0 ? -1 : possible_antecedent(before);
  if (antecedent >= 0 && chance(80)) {
    add_it(clause, antecedent);
  } else {
    const auto verb = pick_verb(
        ClauseKind::adverbial, [](const Verb& v) { return v.frame != Frame::clausal; }, depth);
    finish(clause, verb, -1);
  }
  return clause;
}

int Sampler::possible_antecedent(int clause) {
  const int object = node(clause).child(Role::object);
  if (object < 0) return -1;
  const int noun = node(object).child(Role::noun);
  if (node(noun).word != WordKind::noun || node(noun).number == Number::plural) return -1;
  return (nouns()[static_cast<std::size_t>(node(noun).lexeme)].classes & (person | animal)) == 0 ? noun : -1;
}

void Sampler::add_it(int clause, int antecedent) {
  const bool subject = chance(50);
  const unsigned classes = nouns()[static_cast<std::size_t>(node(antecedent).lexeme)].classes;
  const auto it =
      pronoun(node(antecedent).gender, Number::singular, subject ? Case::nominative : Case::accusative);
  node(node(it).child(Role::noun)).cue = static_cast<std::int16_t>(antecedent);
  const auto verb = pick_verb(
      ClauseKind::adverbial,
      [&](const Verb& v) {
        return subject ? v.frame == Frame::copula
                       : v.frame == Frame::transitive && (v.objects & classes) != 0;
      },
      p_.max_depth);
  if (!subject) tree().set(clause, Role::clitic, it);
  finish(clause, verb, subject ? it : -1);
}

std::int16_t Sampler::relative_clause(int antecedent, int depth) {
  const auto clause = new_clause(ClauseKind::relative, depth);
  const unsigned classes = nouns()[static_cast<std::size_t>(node(antecedent).lexeme)].classes;
  const bool subject = (classes & (person | animal)) != 0 && chance(50);
  const auto verb = pick_verb(
      ClauseKind::relative,
      [&](const Verb& v) {
        if (subject) return v.frame != Frame::clausal && (v.subjects & classes) != 0;
        return (v.frame == Frame::transitive || v.frame == Frame::dative) && (v.objects & classes) != 0;
      },
      depth);
  Node leaf = node(antecedent);  // its gender and number
  leaf.word = WordKind::relative;
  leaf.cue = static_cast<std::int16_t>(antecedent);
  const bool dative = verbs()[static_cast<std::size_t>(verb)].frame == Frame::dative;
  leaf.grammatical_case = subject ? Case::nominative : dative ? Case::dative : Case::accusative;
  leaf.label = subject ? "nsubj" : "obj";  // an only object is obj in any case
  const auto mark = tree().add(leaf);
  embed(clause, mark);
  finish(clause, verb, subject ? mark : -1);
  return clause;
}

Combinations Sampler::combination(Place held_out) {
  return held_out == Place::nowhere ? 0 : combinations[static_cast<std::size_t>(held_out)];
}

Combinations Sampler::combination(ClauseKind held_out) {
  switch (held_out) {
    case ClauseKind::complement:
      return combinations[3];
    case ClauseKind::adverbial:
      return combinations[4];
    case ClauseKind::relative:
      return combinations[5];
    case ClauseKind::main:
    case ClauseKind::none:
      break;
  }
  return 0;
}

Derivation sample(const Profile& profile, RandomStream& random, Combinations wanted) {
  return Sampler(profile, random, wanted).sample();
}

}  // namespace polyhead::data::grammar
