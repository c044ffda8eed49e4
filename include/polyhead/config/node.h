#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace polyhead::config {

/// Where a setting was given, as messages name it: "file.yaml:12", or "--set model.heads=6".
struct Place {
  std::string text;
  int order = 0;  ///< messages are sorted by it: the line, overrides last
};

/// A YAML value as text, before it has a type. A mapping's value has the place of its key.
struct Node {
  enum class Kind {
    null,
    scalar,
    sequence,
    mapping,
    refused  ///< uses YAML that is not supported, which has already been reported
  };
  Kind kind = Kind::null;
  Place place = {};
  std::string text = {};  ///< of a scalar
  bool quoted = false;    ///< a scalar in quotes is text, whatever it looks like
  std::vector<Node> items = {};
  std::vector<std::pair<std::string, Node>> members = {};

  const Node* find(std::string_view key) const;
};

/// A node that does not hold what its field expects; thrown by Codec::read, reported with the field's key.
struct Unexpected {
  Place place;
  std::string index;  ///< "[2]" within a list, else empty
  std::string message;
};

/// Throws Unexpected: `"many", expected an integer`.
[[noreturn]] void unexpected(const Node& node, std::string_view expected);

/// What `node` holds, short enough for a message: 6, "many", a list, a mapping, nothing.
std::string given(const Node& node);
/// `text` as a YAML scalar that reads back as the same string; quoted only when it has to be.
std::string scalar_text(std::string_view text);
/// `text` in double quotes, with control characters escaped.
std::string quoted_text(std::string_view text);

}  // namespace polyhead::config
