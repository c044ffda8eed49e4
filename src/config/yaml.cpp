#include "polyhead/config/yaml.h"

#include <algorithm>

#include "polyhead/config/settings.h"
#include "polyhead/core/unicode.h"
#include "shorten.h"
#include "suggest.h"
#include "tree.h"

namespace polyhead::config {
namespace {

constexpr std::size_t max_problems = 100;

void list_paths(const Field& section, const std::string& path, std::vector<std::string>& paths) {
  for (const Field& field : section.fields) {
    const std::string field_path = join(path, field.key);
    paths.push_back(field_path);
    list_paths(field, field_path, paths);
  }
}

std::string expectation(const Field& field) {
  std::string text;
  for (const Constraint& constraint : field.constraints)
    (text += text.empty() ? "" : " and ") += constraint.text;
  return text;
}

/// Fills structs from a tree, collecting what is wrong.
class Reader {
 public:
  Reader(const Field& root, std::vector<Problem>& problems) : problems_(problems) {
    list_paths(root, "", known_);
  }

  /// Whether every value below `section` could be used; only then do its rules across fields make sense.
  bool read_section(const Field& section, const Node& node, const std::string& path) {
    bool usable = true;
    for (const Field& field : section.fields) {
      const Node* given_node = node.find(field.key);
      const std::string field_path = join(path, field.key);
      if (given_node != nullptr && given_node->kind == Node::Kind::refused)
        usable = false;
      else if (field.is_struct)
        usable &= read_struct(field, given_node, node.place, field_path);
      else
        usable &= read_value(field, given_node, node.place, field_path);
    }
    report_unknown(section, node, path);
    if (usable && section.validate) {
      Problems problems(problems_, node, path);
      section.validate(problems);
    }
    return usable;
  }

 private:
  void report(const Place& place, const std::string& path, const std::string& message) {
    problems_.push_back({place.order, concat(place.text, ": ", path, ": ", message)});
  }

  bool read_struct(const Field& field, const Node* node, const Place& section, const std::string& path) {
    const Node absent{.kind = Node::Kind::mapping, .place = section};
    if (node == nullptr) return read_section(field, absent, path);
    if (node->kind == Node::Kind::mapping) return read_section(field, *node, path);
    report(node->place, path, given(*node) + ", expected a mapping");
    return false;
  }

  bool read_value(const Field& field, const Node* node, const Place& section, const std::string& path) {
    if (node != nullptr) {
      if (contains_refused(*node)) return false;
      try {
        field.read(*node);
      } catch (const Unexpected& problem) {
        report(problem.place, path + problem.index, problem.message);
        return false;
      }
    }
    const bool holds = std::all_of(field.constraints.begin(), field.constraints.end(), field.satisfies);
    if (!holds)
      report(node ? node->place : section, path,
             shortened(field.text(), 60) + ", expected " + expectation(field));
    return holds;
  }

  static bool contains_refused(const Node& node) {
    const auto refused = [](const auto& member) { return contains_refused(member.second); };
    return node.kind == Node::Kind::refused ||
           std::any_of(node.items.begin(), node.items.end(), contains_refused) ||
           std::any_of(node.members.begin(), node.members.end(), refused);
  }

  void report_unknown(const Field& section, const Node& node, const std::string& path) {
    for (const auto& [key, value] : node.members) {
      const auto is_key = [&key = key](const Field& field) { return field.key == key; };
      if (std::any_of(section.fields.begin(), section.fields.end(), is_key)) continue;
      const std::string key_path = join(path, key);
      // Looking for the nearest of thousands would take seconds.
      const std::string near = problems_.size() < max_problems ? nearest(key_path, known_) : "";
      report(value.place, key_path, near.empty() ? "unknown key" : "unknown key, did you mean " + near + "?");
    }
  }

  std::vector<Problem>& problems_;
  std::vector<std::string> known_;
};

void dump_section(const Field& section, const std::string& indent, std::string& out) {
  for (const Field& field : section.fields) {
    out += indent + field.key + ":";
    if (!field.is_struct) {
      out += " " + field.text() + "\n";
    } else if (field.fields.empty()) {
      out += " {}\n";
    } else {
      out += "\n";
      dump_section(field, indent + "  ", out);
    }
  }
}

using Row = std::vector<std::string>;

void document_section(const Field& section, const std::string& path, std::vector<Row>& rows) {
  for (const Field& field : section.fields) {
    const std::string key = join(path, field.key);
    if (field.is_struct) {
      document_section(field, key, rows);
      continue;
    }
    const std::string limits = expectation(field);
    rows.push_back({concat("`", key, "`"), concat(field.type, limits.empty() ? "" : "; ", limits),
                    concat("`", field.text(), "`"), field.doc});
    for (std::string& cell : rows.back())
      for (std::size_t bar = 0; (bar = cell.find('|', bar)) != cell.npos; bar += 2) cell.insert(bar, "\\");
  }
}

void compare(const Field& first, const Field& second, const std::string& path, std::vector<Difference>& out) {
  for (std::size_t i = 0; i < first.fields.size(); ++i) {
    const Field &a = first.fields[i], &b = second.fields[i];
    const std::string key = join(path, a.key);
    if (a.is_struct)
      compare(a, b, key, out);
    else if (a.text() != b.text())
      out.push_back({key, a.text(), b.text()});
  }
}

/// The mapping in `text`; what may follow the problems found so far goes to `problems`.
Node mapping_of(std::string_view text, std::string_view name, std::vector<Problem>& problems) {
  const std::string source = one_line(name, 1000);
  std::optional<Node> tree = read_tree(text, source, std::nullopt, problems);
  if (!tree) throw_problems(problems);
  require(tree->kind != Node::Kind::null, source, ": empty, expected a mapping of settings");
  if (tree->kind != Node::Kind::mapping && problems.empty())
    throw Error(concat(tree->place.text, ": ", given(*tree), ", expected a mapping of settings"));
  tree->place = {source, 0};
  return std::move(*tree);
}

}  // namespace

void throw_problems(std::vector<Problem>& problems) {
  if (problems.empty()) return;
  std::stable_sort(problems.begin(), problems.end(),
                   [](const Problem& a, const Problem& b) { return a.order < b.order; });
  std::string message;
  for (std::size_t i = 0; i < std::min(problems.size(), max_problems); ++i)
    (message += i ? "\n" : "") += problems[i].message;
  if (problems.size() > max_problems)
    message += concat("\nand ", problems.size() - max_problems, " more like these");
  throw Error(message);
}

void parse(const Field& root, std::string_view text, std::string_view name,
           std::span<const std::string> overrides) {
  std::vector<Problem> problems;
  Node tree = mapping_of(text, name, problems);
  apply_overrides(tree, overrides, problems);
  Reader(root, problems).read_section(root, tree, "");
  throw_problems(problems);
}

void parse(const Field& root, const Node& tree) {
  std::vector<Problem> problems;
  Reader(root, problems).read_section(root, tree, "");
  throw_problems(problems);
}

Node read_mapping(std::string_view text, std::string_view name) {
  std::vector<Problem> problems;
  Node tree = mapping_of(text, name, problems);
  throw_problems(problems);
  return tree;
}

std::string dump(const Field& root) {
  std::string out;
  dump_section(root, "", out);
  return out.empty() ? "{}\n" : out;
}

std::string document(const Field& root) {
  std::vector<Row> rows{{"key", "value", "default", "meaning"}};
  document_section(root, "", rows);
  std::vector<std::size_t> widths(rows[0].size());
  const auto width = [](const std::string& cell) { return unicode::code_points(cell).size(); };
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  Row rule;
  for (const std::size_t w : widths) rule.emplace_back(w, '-');
  rows.insert(rows.begin() + 1, rule);
  std::string out;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      out += (i ? " | " : "| ") + row[i] + std::string(widths[i] - width(row[i]), ' ');
    out += " |\n";
  }
  return out;
}

std::vector<Difference> difference(const Field& first, const Field& second) {
  std::vector<Difference> out;
  compare(first, second, "", out);
  return out;
}

}  // namespace polyhead::config
