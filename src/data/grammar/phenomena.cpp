#include "data/grammar/phenomena.h"

#include <algorithm>
#include <optional>

namespace polyhead::data::grammar {
namespace {

int finite_verb(const Node& clause) { return clause.child(clause.compound ? Role::auxiliary : Role::verb); }
bool is_noun(const Node& node) { return node.word == WordKind::noun || node.word == WordKind::name; }
Number other(Number number) { return number == Number::singular ? Number::plural : Number::singular; }

int attractors_between(const Tree& tree, const Side& target, int subject, int verb) {
  const Number number = tree[subject].number;
  const auto [begin, end] = std::minmax(target.where[static_cast<std::size_t>(subject)],
                                        target.where[static_cast<std::size_t>(verb)]);
  int count = 0;
  for (int i = begin + 1; i < end; ++i) {
    const Node& node = tree[target.nodes[static_cast<std::size_t>(i)]];
    if (is_noun(node) && node.number != number) ++count;
  }
  return count;
}

class Finder {
 public:
  Finder(const Tree& tree, const Side& target) : tree_(tree), target_(target) {}

  std::vector<Probe> find() {
    visit(tree_.root, -1);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Probe& a, const Probe& b) { return a.slot < b.slot; });
    return std::move(found_);
  }

 private:
  void visit(int index, int clause, bool governed = false) {
    const Node& node = tree_[index];
    if (node.kind == Kind::word) return visit_word(index, clause);
    if (node.kind == Kind::clause) {
      clause = index;
      visit_clause(index);
    } else if (node.kind == Kind::noun_phrase) {
      visit_noun_phrase(index, clause, governed);
    }
    for (const int child : node.children)
      if (child >= 0) visit(child, clause, node.kind == Kind::prepositional_phrase);
  }

  int where(int node) const { return node < 0 ? -1 : target_.where[static_cast<std::size_t>(node)]; }

  /// Adds a probe unless the changed tree has the same words.
  Probe* add(Phenomenon phenomenon, int word, int cue, int clause, const Tree& changed) {
    Probe probe;
    probe.phenomenon = phenomenon;
    probe.word = where(word);
    probe.cue = where(cue);
    probe.distance = probe.cue < 0 ? 0 : std::abs(probe.word - probe.cue);
    probe.depth = tree_[clause].depth;
    probe.contrast = german_tokens(changed);
    const auto difference = std::mismatch(target_.tokens.begin(), target_.tokens.end(),
                                          probe.contrast.begin(), probe.contrast.end());
    if (difference.first == target_.tokens.end()) return nullptr;
    probe.slot = static_cast<int>(difference.first - target_.tokens.begin());
    found_.push_back(std::move(probe));
    return &found_.back();
  }

  template <class Change>
  Probe* add_changed(Phenomenon phenomenon, int word, int cue, int clause, const Change& change) {
    Tree changed = tree_;
    change(changed);
    return add(phenomenon, word, cue, clause, changed);
  }

  // Words.

  void visit_word(int index, int clause) {
    const Node& node = tree_[index];
    switch (node.word) {
      case WordKind::name:
        return add_name(index, clause);
      case WordKind::relative:
        return add_relative(index, clause);
      case WordKind::pronoun:
        if (node.cue >= 0) add_pronoun(index, clause);
        return;
      default:
        return;
    }
  }

  void add_name(int index, int clause) {
    const auto used = [&](int lexeme) {
      return std::any_of(tree_.nodes.begin(), tree_.nodes.end(),
                         [&](const Node& n) { return n.word == WordKind::name && n.lexeme == lexeme; });
    };
    const int count = static_cast<int>(names().size());
    for (int i = 1; i < count; ++i) {
      const int wrong = (tree_[index].lexeme + i) % count;
      if (used(wrong)) continue;
      add_changed(Phenomenon::names, index, -1, clause,
                  [&](Tree& t) { t[index].lexeme = static_cast<std::int16_t>(wrong); });
      return;
    }
  }

  /// A form of another gender that no form of the right gender equals, or the form of another case.
  void add_relative(int index, int clause) {
    const Node& node = tree_[index];
    const auto own = [&](std::string_view form) {
      for (const Case c : {Case::nominative, Case::accusative, Case::dative})
        if (german_relative(node.gender, node.number, c) == form) return true;
      return false;
    };
    Node wrong = node;
    const bool of_case = where(index) % 2 == 0 && !has_dative_verb(clause);
    if (of_case) {
      wrong.grammatical_case = Case::dative;
    } else {
      for (const Gender gender : {Gender::masculine, Gender::feminine, Gender::neuter})
        for (const Number number : {Number::plural, Number::singular})
          if (!own(german_relative(gender, number, node.grammatical_case))) {
            wrong.gender = gender;
            wrong.number = number;
          }
    }
    add_changed(Phenomenon::relatives, index, node.cue, clause, [&](Tree& t) { t[index] = wrong; });
  }

  /// "who helps Anna" and "whom Anna helps": names and plurals have the same form in both cases.
  bool has_dative_verb(int clause) const {
    const Node& verb = tree_[tree_[clause].child(Role::verb)];
    return verb.word == WordKind::verb &&
           verbs()[static_cast<std::size_t>(verb.lexeme)].frame == Frame::dative;
  }

  void add_pronoun(int index, int clause) {
    const Node& node = tree_[index];
    const auto refers = [&](Gender gender) {  // to something else
      return std::any_of(tree_.nodes.begin(), tree_.nodes.end(), [&](const Node& n) {
        return is_noun(n) && (n.number == Number::plural ? gender == Gender::feminine : n.gender == gender);
      });
    };
    for (const Gender gender : {Gender::masculine, Gender::feminine, Gender::neuter}) {
      if (gender == node.gender || refers(gender)) continue;
      add_changed(Phenomenon::pronouns, index, node.cue, clause, [&](Tree& t) { t[index].gender = gender; });
      return;
    }
  }

  // Noun phrases.

  void visit_noun_phrase(int phrase, int clause, bool governed) {
    const int noun = tree_[phrase].child(Role::noun), determiner = tree_[phrase].child(Role::determiner);
    if (tree_[noun].word != WordKind::noun) return;
    if (where(determiner) >= 0) add_article(determiner, noun, clause, governed);
    const int sense = other_sense_of_noun(tree_[noun].lexeme);
    if (sense >= 0) {
      const int context =
          tree_[tree_[tree_[phrase].child(Role::attribute)].child(Role::inner)].child(Role::noun);
      add_changed(Phenomenon::senses, noun, context, clause,
                  [&](Tree& t) { t[noun].lexeme = static_cast<std::int16_t>(sense); });
    }
  }

  /// Whether article and noun go together in a case: in any, without one.
  static bool fits(std::string_view article, Determiner determiner, const Node& noun, std::optional<Case> c) {
    const std::string_view form = german_word(noun);
    for (const Case tried : {Case::nominative, Case::accusative, Case::dative})
      for (const Number number : {Number::singular, Number::plural})
        if (c.value_or(tried) == tried && german_noun(noun.lexeme, number, tried) == form &&
            german_article(determiner, noun.gender, number, tried) == article)
          return true;
    return false;
  }

  /// `governed`: by a preposition, so that no other case can be meant.
  void add_article(int determiner, int noun, int clause, bool governed) {
    const Node& node = tree_[determiner];
    for (const std::optional<Case> c : {std::optional<Case>(), std::optional<Case>(node.grammatical_case)}) {
      if (c && !governed) return;
      for (const Gender gender : {Gender::masculine, Gender::feminine, Gender::neuter}) {
        const std::string_view wrong =
            german_article(node.determiner, gender, Number::singular, node.grammatical_case);
        if (fits(wrong, node.determiner, tree_[noun], c)) continue;
        add_changed(Phenomenon::articles, determiner, noun, clause, [&](Tree& t) {
          t[determiner].gender = gender;
          t[determiner].number = Number::singular;
        });
        return;
      }
    }
  }

  // Clauses.

  void visit_clause(int clause) {
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

  void add_agreement(int clause) {
    const Node& node = tree_[clause];
    const int finite = finite_verb(node), subject = tree_[finite].cue;
    const Node& head = tree_[subject];
    if (head.word == WordKind::pronoun && head.person == Person::third && german_word(head) == "sie") return;
    if (may_change_places(clause, other(head.number))) return;
    Probe* const probe = add_changed(Phenomenon::agreement, finite, subject, clause,
                                     [&](Tree& t) { t[finite].number = other(t[finite].number); });
    if (probe != nullptr) probe->attractors = attractors_between(tree_, target_, subject, finite);
  }

  /// Whether the clause with a verb in `number` could be read with the object as its subject, as German order allows.
  bool may_change_places(int clause, Number number) const {
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

  int head_of(int phrase) const {
    return tree_[phrase].kind == Kind::word ? phrase : tree_[phrase].child(Role::noun);
  }

  /// Whether the phrase has the same words in another case.
  bool has_form_of(int phrase, Case c) const {
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

  void add_kein(int clause) {
    const int object = tree_[clause].child(Role::object), determiner = tree_[object].child(Role::determiner);
    add_changed(Phenomenon::negation, determiner, tree_[object].child(Role::noun), clause, [&](Tree& t) {
      for (const Role role : {Role::determiner, Role::adjective, Role::further_adjective})
        if (t[object].has(role)) t[t[object].child(role)].determiner = Determiner::indefinite;
      Node nicht;
      nicht.word = WordKind::negation;
      t.set(object, Role::negation, t.add(nicht));
    });
  }

  void add_opposition(int clause) {
    const int object = tree_[clause].child(Role::object), negation = tree_[object].child(Role::negation);
    add_changed(Phenomenon::negation, negation, tree_[object].child(Role::noun), clause, [&](Tree& t) {
      t.set(object, Role::negation, -1);
      t.set(clause, Role::negation, static_cast<std::int16_t>(negation));
    });
  }

  void add_attachment(int clause) {
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

  /// Whether a phrase before the object would be next to the subject, and could be of that.
  bool is_beside_subject(int clause) const {
    const Node& node = tree_[clause];
    return node.order != Order::main && !node.has(Role::adverb) && node.has(Role::subject) &&
           tree_[head_of(node.child(Role::subject))].word == WordKind::noun;
  }

  /// Where it is in place of where it goes, or the other way round.
  void add_wrong_case(int phrase, int cue, int clause) {
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

  void add_verb_sense(int clause) {
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

  const Tree& tree_;
  const Side& target_;
  std::vector<Probe> found_;
};

}  // namespace

Agreement agreement(const Tree& tree, const Side& target) {
  Agreement most;
  for (const Node& node : tree.nodes) {
    if (node.kind != Kind::clause) continue;
    const int finite = finite_verb(node), subject = tree[finite].cue;
    most.attractors = std::max(most.attractors, attractors_between(tree, target, subject, finite));
    most.distance = std::max(most.distance, std::abs(target.where[static_cast<std::size_t>(finite)] -
                                                     target.where[static_cast<std::size_t>(subject)]));
  }
  return most;
}

int depth(const Tree& tree) {
  int most = 0;
  for (const Node& node : tree.nodes)
    if (node.kind == Kind::clause) most = std::max(most, static_cast<int>(node.depth));
  return most;
}

std::vector<Probe> probes(const Tree& tree, const Side& target) { return Finder(tree, target).find(); }

}  // namespace polyhead::data::grammar
