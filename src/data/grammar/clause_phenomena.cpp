#include <algorithm>
#include <array>

#include "data/grammar/finder.h"

namespace polyhead::data::grammar {

void Finder::visit_clause(int clause, const std::vector<int>& hosts) {
  const Node& node = tree_[clause];
  add_agreement(clause, hosts);
  const auto reorder = [&](Phenomenon phenomenon, int word, int cue, Order order) {
    add_changed(phenomenon, word, cue, clause, [&](Tree& t) { t[clause].order = order; });
  };
  const int verb = node.child(Role::verb), finite = finite_verb(node), negation = node.child(Role::negation);
  const bool subordinate = node.order == Order::subordinate, inverted = node.order == Order::inverted;
  if (inverted && !may_be_genitive(clause) && !follows_verb_last(clause))
    reorder(Phenomenon::inversion, finite, tree_[verb].cue, Order::finite_late);
  // With nothing but adverbs and phrases that are not needed the wrong order is right too: they can follow.
  const bool object = node.has(Role::object) || node.has(Role::clitic);
  const bool relative = node.clause == ClauseKind::relative;
  if (subordinate && (object || node.compound || where(negation) >= 0) && !(relative && is_last(clause)))
    reorder(Phenomenon::verb_final, finite, node.child(Role::mark), Order::finite_early);
  // In elevated style what is denied can follow.
  const bool opposed = node.has(Role::object) && tree_[node.child(Role::object)].has(Role::other);
  if (!subordinate && object && !opposed && tree_[verb].form == VerbForm::participle &&
      tree_[verb].word == WordKind::verb)
    reorder(Phenomenon::bracket, verb, finite,
            inverted ? Order::inverted_participle_early : Order::main_participle_early);
  const int particle = node.child(Role::particle);
  if (where(particle) >= 0)
    add_changed(Phenomenon::particles, particle, verb, clause, [&](Tree& t) {
      t[particle].german = verbs()[static_cast<std::size_t>(t[particle].lexeme)].wrong_particle;
    });
  if (negation >= 0) add_negation(clause);
  if (opposed) add_opposition(clause);
  add_attachment(clause);
  add_verb_sense(clause, hosts);
}

const Node* Finder::first_before(int clause) const {
  const Node& root = tree_[tree_.root];
  return root.has(Role::first) && root.child(Role::second) == clause ? &tree_[root.child(Role::first)]
                                                                     : nullptr;
}

bool Finder::follows_modal(int clause) const {
  const Node* const first = first_before(clause);
  if (first == nullptr || !first->compound) return false;
  const Auxiliary auxiliary = tree_[finite_verb(*first)].auxiliary_verb;
  return auxiliary == Auxiliary::can || auxiliary == Auxiliary::must;
}

bool Finder::follows_verb_last(int clause) const {
  const Node* const first = first_before(clause);
  return first != nullptr &&
         (first->has(Role::complement) || first->has(Role::reason) || follows_modal(clause));
}

bool Finder::may_be_genitive(int clause) const {
  const Node& node = tree_[clause];
  if (!node.has(Role::front) || !node.has(Role::subject)) return false;
  const Node &front = tree_[node.child(Role::front)], &subject = tree_[node.child(Role::subject)];
  if (front.kind != Kind::prepositional_phrase || subject.kind != Kind::noun_phrase ||
      !subject.has(Role::determiner) || subject.has(Role::adjective))
    return false;
  const Node& noun = tree_[subject.child(Role::noun)];
  return german_word(tree_[subject.child(Role::determiner)]) == "der" &&
         german_noun(noun.lexeme, Number::plural, Case::nominative) == german_word(noun);
}

void Finder::add_agreement(int clause, const std::vector<int>& hosts) {
  const Node& node = tree_[clause];
  const int finite = finite_verb(node), subject = tree_[finite].cue;
  const Node& head = tree_[subject];
  if (head.word == WordKind::pronoun && head.person == Person::third && german_word(head) == "sie") return;
  // "ihr" is also you, many of them, whose verb has the ending of the third person singular: "dankt ihr".
  if (!node.compound && head.number == Number::plural && node.has(Role::clitic) &&
      german_word(tree_[head_of(node.child(Role::clitic))]) == "ihr")
    return;
  if (head.person == Person::first && head.number == Number::singular && follows_modal(clause)) return;
  // "dass Frauen gut ist": how they feel.
  if (is_good(clause) && node.has(Role::subject) && has_form_of(node.child(Role::subject), Case::dative))
    return;
  if (may_change_places(clause, other(head.number)) || may_be_of_host(clause, other(head.number), hosts))
    return;
  if (head.word == WordKind::relative && german_word(head) == "die" && may_be_main(clause)) return;
  Probe* const probe = add_changed(Phenomenon::agreement, finite, subject, clause,
                                   [&](Tree& t) { t[finite].number = other(t[finite].number); });
  if (probe != nullptr) probe->attractors = attractors_between(tree_, target_, subject, finite);
}

bool Finder::may_be_of_host(int clause, Number number, const std::vector<int>& hosts) const {
  if (tree_[clause].clause != ClauseKind::relative) return false;
  const Node& mark = tree_[tree_[clause].child(Role::mark)];
  return std::any_of(hosts.begin(), hosts.end(), [&](int host) {
    return host != mark.cue && tree_[host].number == number &&
           german_relative(tree_[host].gender, number, Case::nominative) == german_word(mark);
  });
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
  const auto agrees = [&](int phrase) {
    const Node& head = tree_[head_of(phrase)];
    return head.number == number || german_word(head) == "sie";
  };
  // "nicht das Kind, sondern die Männer": the verb may agree with either.
  const int corrected = tree_[object].has(Role::other) ? tree_[object].child(Role::other) : object;
  return (agrees(object) || agrees(corrected)) && has_form_of(object, Case::nominative) &&
         has_form_of(corrected, Case::nominative) &&
         has_form_of(subject, tree_[head_of(object)].grammatical_case);
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

void Finder::add_negation(int clause) {
  const int object = tree_[clause].child(Role::object), negation = tree_[clause].child(Role::negation);
  if (object < 0 || !tree_[object].has(Role::determiner)) return;
  const int determiner = tree_[object].child(Role::determiner);
  const bool kein = tree_[determiner].determiner == Determiner::negative;
  // Of a kind: who loves women "liebt die Frauen".
  const Node& verb = tree_[tree_[clause].child(Role::verb)];
  if (kein && tree_[determiner].number == Number::plural && verb.word == WordKind::verb) {
    constexpr std::array<std::string_view, 4> of_kinds{"love", "know", "help", "thank"};
    if (std::find(of_kinds.begin(), of_kinds.end(), verbs()[static_cast<std::size_t>(verb.lexeme)].english) !=
        of_kinds.end())
      return;
  }
  add_changed(Phenomenon::negation, kein ? determiner : negation,
              kein ? tree_[object].child(Role::noun) : tree_[clause].child(Role::verb), clause, [&](Tree& t) {
                for (const Role role : {Role::determiner, Role::adjective, Role::further_adjective})
                  if (t[object].has(role))
                    t[t[object].child(role)].determiner = kein ? Determiner::definite : Determiner::negative;
                t[negation].english_only = !kein;
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
  const bool either_case = takes_either_case(clause);
  if (node.has(Role::place) && !either_case) add_wrong_case(node.child(Role::place), verb, clause);
  if (node.has(Role::instrument)) {
    // With no word but the verb's between them it can be the subject's, which is not what the source says.
    if (node.order == Order::main)
      add_changed(Phenomenon::attachment, head_of(tree_[node.child(Role::instrument)].child(Role::inner)),
                  verb, clause, [&](Tree& t) { t[clause].order = Order::instrument_early; });
    return;
  }
  if (either_case || object < 0 || !tree_[object].has(Role::attribute)) return;
  const int attribute = tree_[object].child(Role::attribute);
  if (prepositions()[static_cast<std::size_t>(tree_[attribute].lexeme)].two_way)
    add_wrong_case(attribute, tree_[object].child(Role::noun), clause);
}

bool Finder::takes_either_case(int clause) const {
  const Node& node = tree_[clause];
  const Node& verb = tree_[node.child(Role::verb)];
  if (verb.word != WordKind::verb) return false;
  const std::string_view objects = verbs()[static_cast<std::size_t>(verb.lexeme)].either_case;
  const auto is = [&](int phrase) {
    const Node& noun = tree_[tree_[phrase].child(Role::noun)];
    return noun.word == WordKind::noun && nouns()[static_cast<std::size_t>(noun.lexeme)].english == objects;
  };
  if (objects == any_noun || !node.has(Role::object)) return objects == any_noun;
  const int object = node.child(Role::object);
  return is(object) || (tree_[object].has(Role::other) && is(tree_[object].child(Role::other)));
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
  if (german_tokens(wrong) == german_tokens(other_number)) return;  // "hinter den Prinzen"
  add(Phenomenon::attachment, tree_[inner].child(Role::noun), cue, clause, wrong);
}

void Finder::add_verb_sense(int clause, const std::vector<int>& hosts) {
  const Node& node = tree_[clause];
  const int verb = node.child(Role::verb);
  if (tree_[verb].word != WordKind::verb) return;
  const int sense = other_sense(tree_[verb].lexeme);
  if (sense < 0) return;
  const Verb& right = verbs()[static_cast<std::size_t>(tree_[verb].lexeme)];
  // The subject, or where those of both senses are the same, what the verb has besides.
  int cue = tree_[verb].cue;
  if (right.subjects == verbs()[static_cast<std::size_t>(sense)].subjects) {
    if (node.has(Role::complement))
      cue = tree_[node.child(Role::complement)].child(Role::mark);
    else if (node.has(Role::object) || node.has(Role::clitic))
      cue = tree_[node.child(node.has(Role::object) ? Role::object : Role::clitic)].child(Role::noun);
    else
      cue = node.child(Role::mark);
    if (right.frame == Frame::transitive && may_be_known_as_fact(clause)) return;
  } else if ((right.subjects & person) != 0 || may_be_of_host(clause, tree_[cue].number, hosts)) {
    return;  // people may eat as animals do, and a host may be one of them
  }
  if (tree_[cue].word == WordKind::relative) cue = tree_[cue].cue;
  add_changed(Phenomenon::senses, verb, cue, clause,
              [&](Tree& t) { t[verb].lexeme = static_cast<std::int16_t>(sense); });
}

bool Finder::is_located(int phrase) const {
  for (int at = tree_[phrase].child(Role::attribute); at >= 0;
       at = tree_[tree_[at].child(Role::inner)].child(Role::attribute))
    if (prepositions()[static_cast<std::size_t>(tree_[at].lexeme)].two_way) return true;
  return false;
}

bool Finder::may_be_known_as_fact(int clause) const {
  const Node& node = tree_[clause];
  const int front = node.child(Role::front), object = node.child(Role::object);
  const auto is_place = [&](int noun) {
    return tree_[noun].word == WordKind::noun &&
           (nouns()[static_cast<std::size_t>(tree_[noun].lexeme)].classes & place) != 0;
  };
  if (front >= 0 && tree_[front].kind == Kind::prepositional_phrase) return true;
  if (node.has(Role::clitic)) {
    const Node& pronoun = tree_[head_of(node.child(Role::clitic))];
    if (german_word(pronoun) == "es" || german_word(pronoun) == "sie") return true;
    if (pronoun.cue >= 0 && is_place(pronoun.cue)) return true;
  } else if (object < 0) {
    return true;  // a relative pronoun is
  }
  const auto may_be = [&](int phrase) {
    if (phrase < 0 || tree_[phrase].kind != Kind::noun_phrase) return false;
    const bool noun = tree_[tree_[phrase].child(Role::noun)].word == WordKind::noun;
    const bool definite = tree_[phrase].has(Role::determiner) &&
                          tree_[tree_[phrase].child(Role::determiner)].determiner == Determiner::definite;
    return (noun && (!definite || is_place(tree_[phrase].child(Role::noun)))) || is_located(phrase);
  };
  // The subject may be what is known: "Studenten kennen die Frauen".
  return may_be(node.child(Role::subject)) || may_be(object) ||
         (object >= 0 && may_be(tree_[object].child(Role::other)));
}

}  // namespace polyhead::data::grammar
