#include "data/grammar/rules.h"

#include <algorithm>

#include "polyhead/core/error.h"

namespace polyhead::data::grammar {
namespace {

/// A synchronous rule: the children of a phrase in the order of each side, absent ones left out. All children depend on
/// the `head`, but what comes between two that are coordinated on the second of them. Of a clause, `finite` is the
/// auxiliary if there is one, else the verb, and `last` the verb or else its particle.
struct Rule {
  std::string_view head, english, german;
};

constexpr std::string_view english_clause =
    "open mark front subject auxiliary negation verb particle clitic object instrument place adverb "
    "complement "
    "reason close";

constexpr Rule sentence{"first", "first conjunction second end", "first conjunction second end"};
constexpr std::string_view noun_phrase_order =
    "negation determiner adjective further_adjective noun attribute relative comma conjunction other";
constexpr Rule noun_phrase{"noun", noun_phrase_order, noun_phrase_order};
constexpr Rule prepositional_phrase{"inner", "preposition inner", "preposition inner"};

/// By Order.
constexpr std::string_view german_clauses[] = {
    "subject finite MIDDLE last complement reason",
    "front finite subject MIDDLE last complement reason",
    "open mark subject MIDDLE last finite complement reason close",
    "open mark subject finite MIDDLE last complement reason close",
    "front subject finite MIDDLE last complement reason",
    "subject finite last MIDDLE complement reason",
    "front finite subject last MIDDLE complement reason",
    "subject instrument finite MIDDLE last complement reason",
};
constexpr std::string_view middle = "clitic adverb instrument object negation place";

/// Labels of Universal Dependencies, by role.
constexpr std::array<std::string_view, role_names.size()> labels{
    "root",         "cc",     "conj", "punct", "punct", "mark",      "advmod", "nsubj", "aux",   "root",
    "compound:prt", "advmod", "obj",  "obj",   "obl",   "obl",       "advmod", "ccomp", "advcl", "punct",
    "det",          "amod",   "amod", "root",  "nmod",  "acl:relcl", "punct",  "conj",  "case",  "root"};

/// Roles in order, with two more for the verbs of a German clause.
constexpr int finite_symbol = role_names.size(), last_symbol = finite_symbol + 1;
using Row = std::vector<int>;

int symbol(std::string_view word) {
  if (word == "finite") return finite_symbol;
  if (word == "last") return last_symbol;
  const auto* const found = std::find(role_names.begin(), role_names.end(), word);
  require(found != role_names.end(), "grammar rule: \"", word, "\" is no role");
  return static_cast<int>(found - role_names.begin());
}

/// MIDDLE stands for `middle`, of which a role that the row names itself is left out.
Row read(std::string_view text) {
  Row row;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (word == "MIDDLE") {
      for (const int role : read(middle))
        if (std::find(row.begin(), row.end(), role) == row.end()) row.push_back(role);
    } else {
      row.push_back(symbol(word));
    }
    begin = end + 1;
  }
  return row;
}

struct Rows {
  int head;
  Row english, german;
  explicit Rows(const Rule& rule)
      : head(symbol(rule.head)), english(read(rule.english)), german(read(rule.german)) {}
};

struct Grammar {
  Rows sentence{grammar::sentence}, noun_phrase{grammar::noun_phrase},
      prepositional_phrase{grammar::prepositional_phrase};
  Row english_clause = read(grammar::english_clause);
  std::vector<Row> german_clauses;
  Grammar() {
    for (const std::string_view row : grammar::german_clauses) german_clauses.push_back(read(row));
  }
};

const Grammar& rules() {
  static const Grammar grammar;
  return grammar;
}

/// Puts the words of one side in order, and draws the dependencies.
class Writer {
 public:
  Writer(const Tree& tree, bool german, bool dependencies)
      : tree_(tree), german_(german), dependencies_(dependencies) {
    side_.where.assign(tree.nodes.size(), -1);
  }
  Side write() {
    phrase(tree_.root);
    if (dependencies_) {
      side_.tree.heads[static_cast<std::size_t>(root_)] = -1;
      side_.tree.labels[static_cast<std::size_t>(root_)] = "root";
    }
    return std::move(side_);
  }

 private:
  /// The token of the phrase's head; -1 when it has no word on this side.
  int phrase(int index) {
    const Node& node = tree_[index];
    switch (node.kind) {
      case Kind::word:
        return word(index);
      case Kind::sentence:
        return root_ = row(node, of(rules().sentence), rules().sentence.head);
      case Kind::noun_phrase:
        return row(node, of(rules().noun_phrase), rules().noun_phrase.head);
      case Kind::prepositional_phrase:
        return row(node, of(rules().prepositional_phrase), rules().prepositional_phrase.head);
      case Kind::clause:
        break;
    }
    return row(
        node, german_ ? rules().german_clauses[static_cast<std::size_t>(node.order)] : rules().english_clause,
        static_cast<int>(Role::verb));
  }

  const Row& of(const Rows& rows) const { return german_ ? rows.german : rows.english; }

  static Role resolve(const Node& node, int symbol) {
    if (symbol == finite_symbol) return node.compound ? Role::auxiliary : Role::verb;
    if (symbol == last_symbol) return node.compound ? Role::verb : Role::particle;
    return static_cast<Role>(symbol);
  }

  int row(const Node& node, const Row& order, int head_role) {
    std::array<int, 24> tokens{};
    std::array<Role, 24> roles{};
    std::size_t count = 0;
    int head = -1, conjunct = -1;
    for (const int symbol : order) {
      const Role role = resolve(node, symbol);
      if (!node.has(role)) continue;
      const int token = phrase(node.child(role));
      if (role == static_cast<Role>(head_role)) head = token;
      if (role == Role::second || role == Role::other) conjunct = token;
      if (token < 0 || !dependencies_) continue;
      tokens[count] = token;
      roles[count++] = role;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (tokens[i] == head || tokens[i] >= static_cast<int>(side_.tokens.size())) continue;
      const std::string_view own = tree_[node.child(roles[i])].label;
      const bool of_conjunct = roles[i] == Role::conjunction || roles[i] == Role::comma;
      side_.tree.heads[static_cast<std::size_t>(tokens[i])] = of_conjunct ? conjunct : head;
      side_.tree.labels[static_cast<std::size_t>(tokens[i])] =
          own.empty() ? labels[static_cast<std::size_t>(roles[i])] : own;
    }
    return head;
  }

  int word(int index) {
    const Node& node = tree_[index];
    const std::string_view form = german_ ? german_word(node) : english_word(node);
    if (form.empty()) return -1;
    if (form == "," && (side_.tokens.empty() || side_.tokens.back() == "," || side_.tokens.back() == "und"))
      return -1;
    if (form == "." && side_.tokens.back() == ",") drop_last();
    if (!german_ && !side_.tokens.empty() && side_.tokens.back() == "a" &&
        std::string_view("aeiou").find(form[0]) != std::string_view::npos)
      side_.tokens.back() = "an";
    side_.where[static_cast<std::size_t>(index)] = static_cast<int>(side_.tokens.size());
    side_.tokens.push_back(form);
    if (dependencies_) {
      side_.nodes.push_back(static_cast<std::int16_t>(index));
      side_.tree.heads.push_back(-1);
      side_.tree.labels.emplace_back();
    }
    return static_cast<int>(side_.tokens.size()) - 1;
  }

  /// The comma that closes a clause at the end of the sentence. Nothing depends on it.
  void drop_last() {
    side_.tokens.pop_back();
    if (!dependencies_) return;
    side_.where[static_cast<std::size_t>(side_.nodes.back())] = -1;
    side_.nodes.pop_back();
    side_.tree.heads.pop_back();
    side_.tree.labels.pop_back();
  }

  const Tree& tree_;
  const bool german_, dependencies_;
  Side side_;
  int root_ = -1;
};

}  // namespace

Side english(const Tree& tree) { return Writer(tree, false, true).write(); }
Side german(const Tree& tree) { return Writer(tree, true, true).write(); }
std::vector<std::string> german_tokens(const Tree& tree) {
  const Side side = Writer(tree, true, false).write();
  return {side.tokens.begin(), side.tokens.end()};
}

std::vector<Link> align(const Tree& tree, const Side& source, const Side& target) {
  std::vector<Link> links;
  const auto link = [&](int s, int t, bool sure) {
    if (s >= 0 && t >= 0) links.push_back({s, t, sure});
  };
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const Node& node = tree.nodes[i];
    const int s = source.where[i], t = target.where[i];
    link(s, t, true);
    if (node.partner < 0 || (s >= 0) == (t >= 0)) continue;
    const auto partner = static_cast<std::size_t>(node.partner);
    link(s >= 0 ? s : source.where[partner], t >= 0 ? t : target.where[partner], node.sure_partner);
  }
  std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) {
    return std::pair(a.target, a.source) < std::pair(b.target, b.source);
  });
  return links;
}

}  // namespace polyhead::data::grammar
