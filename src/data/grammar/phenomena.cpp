#include "data/grammar/phenomena.h"

#include <algorithm>

#include "data/grammar/finder.h"

namespace polyhead::data::grammar {

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

std::vector<Probe> Finder::find() {
  visit(tree_.root, -1);
  std::stable_sort(found_.begin(), found_.end(),
                   [](const Probe& a, const Probe& b) { return a.slot < b.slot; });
  return std::move(found_);
}

void Finder::visit(int index, int clause, std::vector<int> hosts, bool governed) {
  const Node& node = tree_[index];
  if (node.kind == Kind::word) return visit_word(index, clause);
  if (node.kind == Kind::clause) {
    clause = index;
    if (node.clause == ClauseKind::relative && is_last(index)) add_earlier_nouns(index, hosts);
    visit_clause(index, hosts);
    if (node.clause == ClauseKind::relative) add_relative(clause, hosts);
    hosts.clear();
  } else if (node.kind == Kind::noun_phrase) {
    visit_noun_phrase(index, clause, governed);
    hosts.push_back(node.child(Role::noun));
  }
  for (const int child : node.children)
    if (child >= 0) visit(child, clause, hosts, node.kind == Kind::prepositional_phrase);
}

void Finder::add_earlier_nouns(int clause, std::vector<int>& hosts) const {
  const int end = where(tree_[clause].child(Role::mark));
  for (int i = 0; i < end; ++i) {
    const int node = target_.nodes[static_cast<std::size_t>(i)];
    if (is_noun(tree_[node]) && std::find(hosts.begin(), hosts.end(), node) == hosts.end())
      hosts.push_back(node);
  }
}

Probe* Finder::add(Phenomenon phenomenon, int word, int cue, int clause, const Tree& changed) {
  Probe probe;
  probe.phenomenon = phenomenon;
  probe.word = where(word);
  probe.cue = where(cue);
  probe.distance = probe.cue < 0 ? 0 : std::abs(probe.word - probe.cue);
  probe.depth = tree_[clause].depth;
  probe.contrast = german_tokens(changed);
  const auto difference = std::mismatch(target_.tokens.begin(), target_.tokens.end(), probe.contrast.begin(),
                                        probe.contrast.end());
  if (difference.first == target_.tokens.end()) return nullptr;
  probe.slot = static_cast<int>(difference.first - target_.tokens.begin());
  found_.push_back(std::move(probe));
  return &found_.back();
}

void Finder::visit_word(int index, int clause) {
  const Node& node = tree_[index];
  switch (node.word) {
    case WordKind::name:
      return add_name(index, clause);
    case WordKind::pronoun:
      if (node.cue >= 0) add_pronoun(index, clause);
      return;
    default:
      return;
  }
}

void Finder::add_name(int index, int clause) {
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

void Finder::add_relative(int clause, const std::vector<int>& hosts) {
  const int index = tree_[clause].child(Role::mark);
  const Node& node = tree_[index];
  const bool dative_verb = may_govern_dative(clause);
  const auto fits = [&](std::string_view form) {
    for (const int host : hosts)
      for (const Number number : {Number::singular, Number::plural})
        for (const Case c : {Case::nominative, Case::accusative, Case::dative}) {
          const Node& noun = tree_[host];
          // "den Prinzen" may be one prince or many.
          const bool possible = number == noun.number || is_weak(noun);
          if (possible && (c != Case::dative || dative_verb) &&
              german_relative(noun.gender, number, c) == form)
            return true;
        }
    return false;
  };
  Node wrong = node;
  wrong.grammatical_case = Case::dative;
  const bool of_case = where(index) % 2 == 0 && !dative_verb && !is_good(clause) && !fits(german_word(wrong));
  if (!of_case) {
    wrong = node;
    for (const Gender gender : {Gender::masculine, Gender::feminine, Gender::neuter})
      for (const Number number : {Number::plural, Number::singular}) {
        const std::string_view form = german_relative(gender, number, node.grammatical_case);
        if (fits(form) || form == german_relative(node.gender, node.number, Case::dative)) continue;
        wrong.gender = gender;
        wrong.number = number;
      }
  }
  const std::string_view form = german_word(wrong);
  if (may_be_main(clause) && (form == "der" || form == "die" || form == "das")) return;
  add_changed(Phenomenon::relatives, index, node.cue, clause, [&](Tree& t) { t[index] = wrong; });
}

bool Finder::is_last(int relative_clause) const {
  auto next = static_cast<std::size_t>(where(finite_verb(tree_[relative_clause]))) + 1;
  if (target_.tokens[next] == ",") ++next;
  const std::string_view token = target_.tokens[next];
  return token == "." || token == "und" || tree_[target_.nodes[next]].word == WordKind::subordinator;
}

bool Finder::may_be_main(int relative_clause) const {
  const Node& node = tree_[relative_clause];
  return is_last(relative_clause) && where(finite_verb(node)) == where(node.child(Role::mark)) + 1;
}

bool Finder::is_good(int clause) const {
  const Node& verb = tree_[tree_[clause].child(Role::verb)];
  return verb.word == WordKind::predicate && german_word(verb) == "gut";
}

bool Finder::may_govern_dative(int clause) const {
  const Node& verb = tree_[tree_[clause].child(Role::verb)];
  if (verb.word != WordKind::verb) return false;
  const Verb& row = verbs()[static_cast<std::size_t>(verb.lexeme)];
  return row.frame == Frame::dative || row.english == "call";
}

void Finder::add_pronoun(int index, int clause) {
  const Node& node = tree_[index];
  if (std::any_of(tree_.nodes.begin(), tree_.nodes.end(), [](const Node& n) { return n.has(Role::other); }))
    return;
  const auto refers = [&](Gender gender) {  // to something else
    return std::any_of(tree_.nodes.begin(), tree_.nodes.end(), [&](const Node& n) {
      const bool other = n.word == WordKind::pronoun && n.person == Person::third && &n != &node;
      return (is_noun(n) || other) &&
             (n.number == Number::plural ? gender == Gender::feminine : n.gender == gender);
    });
  };
  for (const Gender gender : {Gender::masculine, Gender::feminine}) {  // es can be all that was said before
    if (gender == node.gender || refers(gender)) continue;
    add_changed(Phenomenon::pronouns, index, node.cue, clause, [&](Tree& t) { t[index].gender = gender; });
    return;
  }
}

void Finder::visit_noun_phrase(int phrase, int clause, bool governed) {
  const int noun = tree_[phrase].child(Role::noun), determiner = tree_[phrase].child(Role::determiner);
  if (tree_[noun].word != WordKind::noun) return;
  if (where(determiner) >= 0) add_article(determiner, noun, clause, governed);
}

bool Finder::fits(std::string_view article, Determiner determiner, const Node& noun, std::optional<Case> c) {
  const std::string_view form = german_word(noun);
  for (const Case tried : {Case::nominative, Case::accusative, Case::dative})
    for (const Number number : {Number::singular, Number::plural})
      if (c.value_or(tried) == tried && german_noun(noun.lexeme, number, tried) == form &&
          german_article(determiner, noun.gender, number, tried) == article)
        return true;
  return false;
}

void Finder::add_article(int determiner, int noun, int clause, bool governed) {
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
