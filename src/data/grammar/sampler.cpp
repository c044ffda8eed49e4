#include "data/grammar/sampler.h"

#include <algorithm>

#include "polyhead/core/error.h"

namespace polyhead::data::grammar {
namespace {

/// Rows of prepositions().
constexpr int in = 0, with = 5;
constexpr int two_way_prepositions = 5;

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

class Sampler {
 public:
  Sampler(const Profile& profile, RandomStream& random) : p_(profile), random_(random) {}

  Derivation sample() {
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

  std::int16_t noun_phrase(const Slot& slot) {
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
    const auto lexeme = pick(nouns(), [&](const Noun& n) {
      return (n.classes & slot.classes) != 0 && n.english != slot.excluded &&
             (slot.only.empty() || n.english == slot.only) && (p_.held_out || n.held_out != slot.place) &&
             (n.context == 0 || (slot.level == 0 && slot.modified));
    });
    add_noun(result, lexeme, slot);
    const Noun& noun = nouns()[static_cast<std::size_t>(lexeme)];
    if (noun.context != 0) {
      add_attribute(result, in, noun.context, slot);
    } else if (slot.modified && slot.level < 3 && chance(p_.attribute)) {
      add_attribute(result, attribute_preposition(noun, slot), 0, slot);
    } else if (slot.modified && slot.depth < p_.max_depth && chance(p_.relative)) {
      tree().set(result, Role::relative, relative_clause(node(result).child(Role::noun), slot.depth + 1));
    }
    return result;
  }

  /// One that the sentence has not yet.
  int unused_name() {
    std::vector<int> unused;
    for (int i = 0; i < static_cast<int>(names().size()); ++i)
      if (std::none_of(tree().nodes.begin(), tree().nodes.end(),
                       [&](const Node& n) { return n.word == WordKind::name && n.lexeme == i; }))
        unused.push_back(i);
    return unused.empty() ? below(names().size()) : unused[static_cast<std::size_t>(below(unused.size()))];
  }

  void add_noun(int phrase, std::int16_t lexeme, const Slot& slot) {
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
    result_.held_out |= noun.held_out == slot.place;
  }

  int attribute_preposition(const Noun& host, const Slot& slot) {
    return pick(prepositions(), [&](const Preposition& p) {
      return (p.hosts & host.classes) != 0 && (p.nouns != carried || slot.level == 0);
    });
  }

  void add_attribute(int host, int preposition, unsigned classes, const Slot& slot) {
    const unsigned allowed =
        classes != 0 ? classes : prepositions()[static_cast<std::size_t>(preposition)].nouns;
    Slot inner{allowed, Case::dative, Place::prepositional, slot.depth, slot.level + 1, false};
    inner.excluded = slot.excluded;
    tree().set(host, Role::attribute, prepositional_phrase(preposition, inner));
  }

  std::int16_t prepositional_phrase(int preposition, const Slot& inner) {
    Node phrase;
    phrase.kind = Kind::prepositional_phrase;
    phrase.lexeme = static_cast<std::int16_t>(preposition);
    const auto result = tree().add(phrase);
    tree().set(result, Role::preposition, word(WordKind::preposition, preposition));
    tree().set(result, Role::inner, noun_phrase(inner));
    return result;
  }

  // Clauses.

  std::int16_t new_clause(ClauseKind kind, int depth) {
    Node clause;
    clause.kind = Kind::clause;
    clause.clause = kind;
    clause.depth = static_cast<std::int16_t>(depth);
    clause.order = kind == ClauseKind::main ? Order::main : Order::subordinate;
    clause.past = chance(p_.past);
    return tree().add(clause);
  }

  std::int16_t main_clause() {
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

  /// A verb of a clause of some kind; a clausal one as often as the profile says.
  template <class Fits>
  std::int16_t pick_verb(ClauseKind kind, const Fits& fits, int depth) {
    const bool clausal = kind != ClauseKind::relative && depth < p_.max_depth && chance(p_.complement);
    const auto verb = pick(verbs(), [&](const Verb& v) {
      return (clausal ? v.frame == Frame::clausal : fits(v)) && (p_.held_out || v.held_out != kind);
    });
    result_.held_out |= verbs()[static_cast<std::size_t>(verb)].held_out == kind;
    return verb;
  }

  /// What is before the finite verb in place of the subject.
  void add_front(int clause, int verb) {
    const Verb& v = verbs()[static_cast<std::size_t>(verb)];
    const int kind = below(100);
    if (kind < 15 && node(clause).has(Role::adverb)) {
      tree().set(clause, Role::front, node(clause).child(Role::adverb));
      tree().set(clause, Role::adverb, -1);
    } else if (kind >= 15 && kind < 30 && v.frame != Frame::directed && v.frame != Frame::copula &&
               !node(clause).has(Role::place)) {
      const Slot inner{place, Case::dative, Place::prepositional, 0, 1, false, false};
      const auto phrase = prepositional_phrase(in, inner);
      node(phrase).label = "obl";
      tree().set(clause, Role::front, phrase);
    } else if (kind >= 30 && chance(p_.reason / 2) && !node(clause).has(Role::complement) &&
               p_.max_depth > 0) {
      const auto fronted = adverbial_clause(1, -1);
      node(fronted).label = "advcl";
      node(node(fronted).child(Role::close)).english = ",";
      tree().set(clause, Role::front, fronted);
    }
    if (node(clause).has(Role::front)) node(clause).order = Order::inverted;
  }

  void embed(int clause, std::int16_t mark) {
    tree().set(clause, Role::open, fixed("", ","));
    tree().set(clause, Role::mark, mark);
    tree().set(clause, Role::close, fixed("", ","));
  }

  std::int16_t complement_clause(int depth) {
    const auto clause = new_clause(ClauseKind::complement, depth);
    embed(clause, word(WordKind::subordinator));
    const auto verb = pick_verb(
        ClauseKind::complement, [](const Verb& v) { return v.frame != Frame::clausal; }, depth);
    finish(clause, verb, -1);
    return clause;
  }

  /// With `it` for the object of the clause `before` where that has one it can be.
  std::int16_t adverbial_clause(int depth, int before) {
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

  int possible_antecedent(int clause) {
    const int object = node(clause).child(Role::object);
    if (object < 0) return -1;
    const int noun = node(object).child(Role::noun);
    if (node(noun).word != WordKind::noun || node(noun).number == Number::plural) return -1;
    return (nouns()[static_cast<std::size_t>(node(noun).lexeme)].classes & (person | animal)) == 0 ? noun
                                                                                                   : -1;
  }

  void add_it(int clause, int antecedent) {
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

  std::int16_t pronoun(Gender gender, Number number, Case c, Person who = Person::third) {
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

  std::int16_t relative_clause(int antecedent, int depth) {
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
    leaf.label = subject ? "nsubj" : dative ? "iobj" : "obj";
    const auto mark = tree().add(leaf);
    embed(clause, mark);
    finish(clause, verb, subject ? mark : -1);
    return clause;
  }

  // What every clause has.

  /// `subject`: its phrase, or a relative pronoun in its place, or -1 for a new one.
  void finish(int clause, int verb, int subject) {
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

  std::int16_t new_subject(int clause, const Verb& v) {
    if ((v.subjects & person) != 0 && chance(20)) {
      const int who = below(6);  // I has verb forms of its own, which would be rare
      if (who < 2) return pronoun(Gender::masculine, Number::singular, Case::nominative, Person::first);
      if (who == 2) return pronoun(Gender::masculine, Number::plural, Case::nominative, Person::first);
      return pronoun(who == 3 ? Gender::masculine : Gender::feminine,
                     who == 5 ? Number::plural : Number::singular, Case::nominative);
    }
    return noun_phrase({v.subjects, Case::nominative, Place::subject, node(clause).depth});
  }

  /// `open`: the object is not the relative pronoun.
  void add_objects(int clause, const Verb& v, bool open) {
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
      const Role role = node(clause).has(Role::clitic) ? Role::clitic : Role::object;
      if (c == Case::dative) node(node(clause).child(role)).label = "iobj";
    }
    if (instrument) {
      Slot slot{carried, Case::dative, Place::prepositional, depth, 1, false, false};
      slot.only = v.instrument;
      tree().set(clause, Role::instrument, prepositional_phrase(with, slot));
    }
    if (v.frame == Frame::directed) add_place(clause, Case::accusative, depth);
    if (v.frame == Frame::intransitive && !v.with_sein && chance(25)) add_place(clause, Case::dative, depth);
  }

  void add_place(int clause, Case c, int depth) {
    const int preposition = below(two_way_prepositions);
    Slot slot{prepositions()[static_cast<std::size_t>(preposition)].nouns & ~unsigned{person | animal},
              c,
              Place::prepositional,
              depth,
              1,
              false,
              false};
    tree().set(clause, Role::place, prepositional_phrase(preposition, slot));
  }

  bool has_relative(int index) {
    if (node(index).has(Role::relative)) return true;
    for (const Role role : {Role::attribute, Role::inner})
      if (node(index).has(role) && has_relative(node(index).child(role))) return true;
    return false;
  }

  void add_adverb(int clause) {
    if (!chance(20)) return;
    // After a relative clause it would be of that clause.
    if (node(clause).has(Role::object) && has_relative(node(clause).child(Role::object))) return;
    const bool past = node(clause).past;
    tree().set(
        clause, Role::adverb,
        word(WordKind::adverb, pick(adverbs(), [&](const Adverb& a) { return past ? a.past : a.present; })));
  }

  void add_verbs(int clause, int verb, int subject, Auxiliary auxiliary) {
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
    if (modal || negated) main.english = "base";
    const auto main_leaf = tree().add(main);
    tree().set(clause, Role::verb, main_leaf);

    if (!simple || negated) {
      Node helper = features;
      helper.word = WordKind::auxiliary;
      helper.auxiliary_verb = auxiliary;
      helper.lexeme = copula ? std::int16_t{0} : std::int16_t{-1};
      helper.partner = main_leaf;
      if (copula) helper.label = "cop";
      if (!modal && !copula && negated) helper.english = helper_of_negation(features);
      tree().set(clause, Role::auxiliary, tree().add(helper));
    }
    if (!v.particle.empty()) {
      Node particle = features;
      particle.word = WordKind::particle;
      particle.lexeme = static_cast<std::int16_t>(verb);
      particle.english_only = simple && main.joined;
      particle.partner = main_leaf;
      particle.sure_partner = true;
      tree().set(clause, Role::particle, tree().add(particle));
    }
    if (negated)
      negate(clause);
    else if (chance(8))
      oppose(clause, v);
  }

  static std::string_view helper_of_negation(const Node& features) {
    if (features.past) return "did";
    return features.person == Person::third && features.number == Number::singular ? "does" : "do";
  }

  /// not: kein in an indefinite object, else nicht.
  void negate(int clause) {
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

  /// "not the dog but the cat".
  void oppose(int clause, const Verb& v) {
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

  const Profile& p_;
  RandomStream& random_;
  Derivation result_;
};

}  // namespace

Derivation sample(const Profile& profile, RandomStream& random) { return Sampler(profile, random).sample(); }

}  // namespace polyhead::data::grammar
