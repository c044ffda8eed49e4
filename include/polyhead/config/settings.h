#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/config/yaml.h"

/// Configurations as trees, for whoever makes many of one: each is the tree with some settings in place of its own.
namespace polyhead::config {

/// A value for the key at a dotted path; the value's place says where it was given.
struct Setting {
  std::string key;
  Node value;
};

/// The mapping that YAML `text` is; `name` is the file's in messages. Throws one Error (usage) that tells everything
/// that is wrong with the text.
Node read_mapping(std::string_view text, std::string_view name);
/// The settings in `overrides`, of the form key.path=value with a YAML value. Throws one Error as read_mapping().
std::vector<Setting> read_overrides(std::span<const std::string> overrides);

/// `tree` with each setting in place of whatever its key holds, the last one winning.
Node with_settings(Node tree, std::span<const Setting> settings);

/// Fills the struct behind `root` from a tree; see config::parse of text.
void parse(const Field& root, const Node& tree);
template <HasFields T>
T parse(const Node& tree) {
  T value{};
  parse(describe(value), tree);
  return value;
}

/// `node` in YAML's flow form: {model.heads: [1, 2], name: run}.
std::string flow_text(const Node& node);

}  // namespace polyhead::config
