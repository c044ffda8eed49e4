#include "data/grammar/derivation.h"

namespace polyhead::data::grammar {

void Sampler::finish(int clause, int verb, int subject) {
  const Verb& v = verbs()[static_cast<std::size_t>(verb)];
  if (subject < 0) subject = new_subject(clause, v);
  const bool relative = node(subject).kind == Kind::word;
  if (!relative) tree().set(clause, Role::subject, static_cast<std::int16_t>(subject));
  const int head = relative ? subject : node(subject).child(Role::noun);
  if (v.frame == Frame::clausal)
    tree().set(clause, Role::complement, complement_clause(node(clause).depth + 1));
  else
    add_objects(clause, v, relative || node(clause).clause != ClauseKind::relative);
  const bool copula = v.frame == Frame::copula;
  if (copula) node(clause).past = false;
  if (!node(clause).past && !copula && chance(p_.modal)) {
    node(clause).compound = true;
    add_verbs(clause, verb, head, chance(60) ? Auxiliary::can : Auxiliary::must);
  } else {
    node(clause).compound = node(clause).past || copula;
    add_verbs(clause, verb, head,
              !node(clause).past && !copula ? Auxiliary::none
              : v.with_sein || copula       ? Auxiliary::be
                                            : Auxiliary::have);
  }
  add_adverb(clause);
}

std::int16_t Sampler::new_subject(int clause, const Verb& v) {
  if ((v.subjects & person) != 0 && chance(20)) {
    const int who = below(6);  // I has verb forms of its own, which would be rare
    if (who < 2) return pronoun(Gender::masculine, Number::singular, Case::nominative, Person::first);
    if (who == 2) return pronoun(Gender::masculine, Number::plural, Case::nominative, Person::first);
    return pronoun(who == 3 ? Gender::masculine : Gender::feminine,
                   who == 5 ? Number::plural : Number::singular, Case::nominative);
  }
  return noun_phrase({v.subjects, Case::nominative, Place::subject, node(clause).depth});
}

void Sampler::add_objects(int clause, const Verb& v, bool open) {
  const int depth = node(clause).depth;
  const bool takes = v.frame == Frame::transitive || v.frame == Frame::dative || v.frame == Frame::directed;
  const Case c = v.frame == Frame::dative ? Case::dative : Case::accusative;
  const bool instrument = v.frame == Frame::transitive && !v.instrument.empty() && chance(40);
  if (takes && open && !node(clause).has(Role::clitic)) {
    if ((v.objects & person) != 0 && chance(15)) {
      const int who = below(3);
      const auto it = pronoun(who == 0 ? Gender::masculine : Gender::feminine,
                              who == 2 ? Number::plural : Number::singular, c);
      tree().set(clause, Role::clitic, it);
    } else {
      Slot slot{v.objects, c, Place::object, depth};
      slot.modified = v.frame != Frame::directed && !instrument;
      slot.excluded = v.instrument;
      tree().set(clause, Role::object, noun_phrase(slot));
    }
  }
  if (instrument) {
    Slot slot{carried, Case::dative, Place::prepositional, depth, 1, false, false};
    slot.only = v.instrument;
    tree().set(clause, Role::instrument, prepositional_phrase(preposition_row("with"), slot));
  }
  if (v.frame == Frame::directed) add_place(clause, Case::accusative, depth);
  if (v.frame == Frame::intransitive && !v.with_sein && chance(25)) add_place(clause, Case::dative, depth);
}

void Sampler::add_place(int clause, Case c, int depth) {
  const int preposition = pick(prepositions(), [](const Preposition& p) { return p.two_way; });
  Slot slot{prepositions()[static_cast<std::size_t>(preposition)].nouns & ~unsigned{person | animal},
            c,
            Place::prepositional,
            depth,
            1,
            false,
            false};
  tree().set(clause, Role::place, prepositional_phrase(preposition, slot));
}

bool Sampler::has_relative(int index) {
  if (node(index).has(Role::relative)) return true;
  for (const Role role : {Role::attribute, Role::inner})
    if (node(index).has(role) && has_relative(node(index).child(role))) return true;
  return false;
}

void Sampler::add_adverb(int clause) {
  if (!chance(20)) return;
  // After a relative clause it would be of that clause.
  if (node(clause).has(Role::object) && has_relative(node(clause).child(Role::object))) return;
  const bool past = node(clause).past;
  tree().set(
      clause, Role::adverb,
      word(WordKind::adverb, pick(adverbs(), [&](const Adverb& a) { return past ? a.past : a.present; })));
}

void Sampler::add_verbs(int clause, int verb, int subject, Auxiliary auxiliary) {
  const Verb& v = verbs()[static_cast<std::size_t>(verb)];
  const bool copula = v.frame == Frame::copula, simple = auxiliary == Auxiliary::none;
  const bool modal = auxiliary == Auxiliary::can || auxiliary == Auxiliary::must;
  const bool negated = auxiliary != Auxiliary::must && chance(20);
  Node features;
  features.number = node(subject).number;
  features.person = node(subject).word == WordKind::pronoun ? node(subject).person : Person::third;
  features.past = node(clause).past;
  features.cue = static_cast<std::int16_t>(subject);

  Node main = features;
  main.word = copula ? WordKind::predicate : WordKind::verb;
  main.lexeme = static_cast<std::int16_t>(copula ? below(adjectives().size()) : verb);
  main.form = simple ? VerbForm::finite : modal ? VerbForm::infinitive : VerbForm::participle;
  main.joined = node(clause).clause != ClauseKind::main;
  if (modal || negated) main.base = true;
  const auto main_leaf = tree().add(main);
  tree().set(clause, Role::verb, main_leaf);

  if (!simple || negated) {
    Node helper = features;
    helper.word = WordKind::auxiliary;
    helper.auxiliary_verb = auxiliary;
    helper.copula = copula;
    helper.partner = main_leaf;
    if (copula) helper.label = "cop";
    if (!modal && !copula && negated) helper.english = helper_of_negation(features);
    tree().set(clause, Role::auxiliary, tree().add(helper));
  }
  if (!v.particle.empty()) add_particle(clause, main_leaf);
  if (negated)
    negate(clause);
  else if (chance(8))
    oppose(clause, v);
}

void Sampler::add_particle(int clause, std::int16_t main_leaf) {
  Node particle = node(main_leaf);
  particle.word = WordKind::particle;
  particle.english_only = !node(clause).compound && particle.joined;
  particle.partner = main_leaf;
  particle.sure_partner = true;
  tree().set(clause, Role::particle, tree().add(particle));
}

std::string_view Sampler::helper_of_negation(const Node& features) {
  if (features.past) return "did";
  return features.person == Person::third && features.number == Number::singular ? "does" : "do";
}

void Sampler::negate(int clause) {
  const auto leaf = word(WordKind::negation);
  tree().set(clause, Role::negation, leaf);
  const int object = node(clause).child(Role::object);
  if (object < 0 || !node(object).has(Role::determiner)) return;
  const int determiner = node(object).child(Role::determiner);
  if (node(determiner).determiner != Determiner::indefinite) return;
  node(leaf).english_only = true;
  node(leaf).partner = static_cast<std::int16_t>(determiner);
  node(leaf).sure_partner = true;
  for (const Role role : {Role::determiner, Role::adjective, Role::further_adjective})
    if (node(object).has(role)) node(node(object).child(role)).determiner = Determiner::negative;
}

void Sampler::oppose(int clause, const Verb& v) {
  const int object = node(clause).child(Role::object);
  if (object < 0 || !node(object).has(Role::determiner) || node(object).has(Role::attribute) ||
      node(object).has(Role::relative))
    return;
  if (node(node(object).child(Role::determiner)).determiner != Determiner::definite) return;
  const int noun = node(object).child(Role::noun);
  Slot slot{v.objects, node(noun).grammatical_case, Place::object, 0, 3, false, false};
  slot.excluded = nouns()[static_cast<std::size_t>(node(noun).lexeme)].english;
  tree().set(object, Role::other, noun_phrase(slot));
  tree().set(object, Role::negation, word(WordKind::negation));
  tree().set(object, Role::comma, fixed("", ","));
  tree().set(object, Role::conjunction, fixed("but", "sondern"));
}

}  // namespace polyhead::data::grammar
