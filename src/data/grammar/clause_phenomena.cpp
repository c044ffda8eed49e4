#include "data/grammar/finder.h"

namespace polyhead::data::grammar {

void Finder::visit_clause(int clause) {
  const Node& node = tree_[clause];
  add_agreement(clause);
  const auto reorder = [&](Phenomenon phenomenon, int word, int cue, Order order) {
    add_changed(phenomenon, word, cue, clause, [&](Tree& t) { t[clause].order = order; });
  };
  const int verb = node.child(Role::verb), finite = finite_verb(node);
  const bool subordinate = node.order == Order::subordinate, inverted = node.order == Order::inverted;
  if (subordinate) reorder(Phenomenon::verb_final, finite, node.child(Role::mark), Order::finite_early);
  if (inverted) reorder(Phenomenon::inversion, finite, tree_[verb].cue, Order::finite_late);
  // Without an object the wrong order may be right: phrases that are not needed can follow, and can be negated.
  const bool object = node.has(Role::object) || node.has(Role::clitic);
  if (!subordinate && object && tree_[verb].form == VerbForm::participle &&
      tree_[verb].word == WordKind::verb)
    reorder(Phenomenon::bracket, verb, finite,
            inverted ? Order::inverted_participle_early : Order::main_participle_early);
  const int particle = node.child(Role::particle);
  if (where(particle) >= 0)
    add_changed(Phenomenon::particles, particle, verb, clause, [&](Tree& t) {
      t[particle].german = verbs()[static_cast<std::size_t>(t[particle].lexeme)].wrong_particle;
    });
  const int negation = node.child(Role::negation);
  // Before these, nicht could be theirs.
  const bool clear = object && !node.has(Role::adverb) && !node.has(Role::instrument);
  if (where(negation) >= 0 && clear)
    reorder(Phenomenon::negation, negation, verb,
            subordinate ? Order::subordinate_negation_early
            : inverted  ? Order::inverted_negation_early
                        : Order::main_negation_early);
  if (negation >= 0 && where(negation) < 0) add_kein(clause);
  if (node.has(Role::object) && tree_[node.child(Role::object)].has(Role::negation)) add_opposition(clause);
  add_attachment(clause);
  add_verb_sense(clause);
}

void Finder::add_agreement(int clause) {
  const Node& node = tree_[clause];
  const int finite = finite_verb(node), subject = tree_[finite].cue;
  const Node& head = tree_[subject];
  if (head.word == WordKind::pronoun && head.person == Person::third && german_word(head) == "sie") return;
  if (may_change_places(clause, other(head.number))) return;
  Probe* const probe = add_changed(Phenomenon::agreement, finite, subject, clause,
                                   [&](Tree& t) { t[finite].number = other(t[finite].number); });
  if (probe != nullptr) probe->attractors = attractors_between(tree_, target_, subject, finite);
}

bool Finder::may_change_places(int clause, Number number) const {
  const Node& node = tree_[clause];
  const int subject = node.has(Role::subject) ? node.child(Role::subject) : node.child(Role::mark);
  const bool of_relative = node.clause == ClauseKind::relative && node.has(Role::subject);
  const int object = node.has(Role::object)   ? node.child(Role::object)
                     : node.has(Role::clitic) ? node.child(Role::clitic)
                     : of_relative            ? node.child(Role::mark)
                                              : -1;
  if (object < 0) return false;
  const Node& head = tree_[head_of(object)];
  const bool agrees = head.number == number || german_word(head) == "sie";
  return agrees && has_form_of(object, Case::nominative) && has_form_of(subject, head.grammatical_case);
}

bool Finder::has_form_of(int phrase, Case c) const {
  const auto same = [&](int index) {
    Node changed = tree_[index];
    changed.grammatical_case = c;
    return german_word(changed) == german_word(tree_[index]);
  };
  if (tree_[phrase].kind == Kind::word) return same(phrase);
  for (const Role role : {Role::determiner, Role::adjective, Role::further_adjective, Role::noun})
    if (tree_[phrase].has(role) && !same(tree_[phrase].child(role))) return false;
  return true;
}

void Finder::add_kein(int clause) {
  const int object = tree_[clause].child(Role::object), determiner = tree_[object].child(Role::determiner);
  add_changed(Phenomenon::negation, determiner, tree_[object].child(Role::noun), clause, [&](Tree& t) {
    for (const Role role : {Role::determiner, Role::adjective, Role::further_adjective})
      if (t[object].has(role)) t[t[object].child(role)].determiner = Determiner::indefinite;
    Node nicht;
    nicht.word = WordKind::negation;
    t.set(object, Role::negation, t.add(nicht));
  });
}

void Finder::add_opposition(int clause) {
  const int object = tree_[clause].child(Role::object), negation = tree_[object].child(Role::negation);
  add_changed(Phenomenon::negation, negation, tree_[object].child(Role::noun), clause, [&](Tree& t) {
    t.set(object, Role::negation, -1);
    t.set(clause, Role::negation, static_cast<std::int16_t>(negation));
  });
}

void Finder::add_attachment(int clause) {
  const Node& node = tree_[clause];
  const int object = node.child(Role::object), verb = node.child(Role::verb);
  const auto noun_of = [&](int phrase) { return head_of(tree_[phrase].child(Role::inner)); };
  if (node.has(Role::place) && tree_[noun_of(node.child(Role::place))].grammatical_case == Case::accusative)
    add_wrong_case(node.child(Role::place), verb, clause);
  if (object < 0 || tree_[tree_[object].child(Role::noun)].word != WordKind::noun) return;
  const int noun = tree_[object].child(Role::noun);
  const int instrument = node.child(Role::instrument), attribute = tree_[object].child(Role::attribute);
  const auto move = [&](int phrase, int cue, int to_verb, int to_noun) {
    add_changed(Phenomenon::attachment, noun_of(phrase), cue, clause, [&](Tree& t) {
      t.set(clause, Role::instrument, static_cast<std::int16_t>(to_verb));
      t.set(object, Role::attribute, static_cast<std::int16_t>(to_noun));
    });
  };
  const bool order_decides = !may_change_places(clause, tree_[tree_[verb].cue].number);
  if (instrument >= 0 && !tree_[object].has(Role::negation) && order_decides)
    move(instrument, verb, -1, instrument);
  if (attribute < 0 || instrument >= 0) return;
  if (prepositions()[static_cast<std::size_t>(tree_[attribute].lexeme)].two_way)
    add_wrong_case(attribute, noun, clause);
  else if (order_decides && !is_beside_subject(clause))
    move(attribute, noun, attribute, -1);
}

bool Finder::is_beside_subject(int clause) const {
  const Node& node = tree_[clause];
  return node.order != Order::main && !node.has(Role::adverb) && node.has(Role::subject) &&
         tree_[head_of(node.child(Role::subject))].word == WordKind::noun;
}

void Finder::add_wrong_case(int phrase, int cue, int clause) {
  const int inner = tree_[phrase].child(Role::inner);
  const auto change = [&](Tree& t, auto feature) {
    for (const Role role : {Role::determiner, Role::adjective, Role::further_adjective, Role::noun})
      if (t[inner].has(role)) feature(t[t[inner].child(role)]);
  };
  Tree wrong = tree_, other_number = tree_;
  change(wrong, [](Node& n) {
    n.grammatical_case = n.grammatical_case == Case::dative ? Case::accusative : Case::dative;
  });
  change(other_number, [](Node& n) { n.number = other(n.number); });
  if (german_tokens(wrong) == german_tokens(other_number)) return;  // "hinter den Jungen"
  add(Phenomenon::attachment, tree_[inner].child(Role::noun), cue, clause, wrong);
}

void Finder::add_verb_sense(int clause) {
  const Node& node = tree_[clause];
  const int verb = node.child(Role::verb);
  if (tree_[verb].word != WordKind::verb) return;
  const int sense = other_sense_of_verb(tree_[verb].lexeme);
  if (sense < 0) return;
  const Verb& right = verbs()[static_cast<std::size_t>(tree_[verb].lexeme)];
  int cue =
      tree_[verb]
          .cue;  // the subject, or what the verb has besides where the subjects of both senses are the same
  if (right.subjects == verbs()[static_cast<std::size_t>(sense)].subjects) {
    if (node.has(Role::complement))
      cue = tree_[node.child(Role::complement)].child(Role::mark);
    else if (node.has(Role::object) || node.has(Role::clitic))
      cue = tree_[node.child(node.has(Role::object) ? Role::object : Role::clitic)].child(Role::noun);
    else
      cue = node.child(Role::mark);
  }
  if (tree_[cue].word == WordKind::relative) cue = tree_[cue].cue;
  add_changed(Phenomenon::senses, verb, cue, clause,
              [&](Tree& t) { t[verb].lexeme = static_cast<std::int16_t>(sense); });
}

}  // namespace polyhead::data::grammar
