#include <algorithm>
#include <limits>

#include "polyhead/config/settings.h"
#include "shorten.h"
#include "tree.h"

namespace polyhead::config {
namespace {

/// The names in a path such as model.heads; empty when the path is malformed.
std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= path.size() && names.size() < max_depth;) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (end == begin) return {};
    names.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
    if (begin > path.size()) return names;
  }
  return {};
}

/// The node at `names`, made where there is none; all of the way there is then a mapping.
Node& reach(Node& root, const std::vector<std::string>& names, const Place& place) {
  Node* node = &root;
  for (const std::string& name : names) {
    if (node->kind != Node::Kind::mapping) *node = Node{.kind = Node::Kind::mapping, .place = place};
    auto& members = node->members;
    auto member =
        std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == name; });
    if (member == members.end()) member = members.insert(member, {name, Node{.place = place}});
    node = &member->second;
  }
  return *node;
}

/// The settings that `overrides` give; what cannot be read goes to `problems`.
std::vector<Setting> settings_of(std::span<const std::string> overrides, std::vector<Problem>& problems) {
  std::vector<Setting> settings;
  for (const std::string& setting : overrides) {
    const Place place{"--set " + one_line(setting, 80), std::numeric_limits<int>::max()};
    const std::size_t equals = setting.find('=');
    const std::string_view key = std::string_view(setting).substr(0, equals);
    if (equals == setting.npos || split_path(key).empty()) {
      problems.push_back({place.order, place.text + ": expected key.path=value, such as model.heads=4"});
      continue;
    }
    std::optional<Node> value =
        read_tree(std::string_view(setting).substr(equals + 1), place.text, place, problems);
    if (!value) continue;
    value->place = place;
    settings.push_back({std::string(key), std::move(*value)});
  }
  return settings;
}

}  // namespace

void apply_overrides(Node& root, std::span<const std::string> overrides, std::vector<Problem>& problems) {
  root = with_settings(std::move(root), settings_of(overrides, problems));
}

std::vector<Setting> read_overrides(std::span<const std::string> overrides) {
  std::vector<Problem> problems;
  std::vector<Setting> settings = settings_of(overrides, problems);
  throw_problems(problems);
  return settings;
}

Node with_settings(Node tree, std::span<const Setting> settings) {
  for (const Setting& setting : settings) {
    std::vector<std::string> names = split_path(setting.key);
    if (names.empty()) names.push_back(setting.key);  // no key has such a name: unknown, as it is
    reach(tree, names, setting.value.place) = setting.value;
  }
  return tree;
}

}  // namespace polyhead::config
