#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/config/problems.h"

namespace polyhead::config {

constexpr std::size_t max_bytes = 256 * 1024;
constexpr std::size_t max_depth = 32;

/// `path` and `key` joined by a dot; an unusual key in quotes and shortened.
std::string join(const std::string& path, std::string_view key);

/// The tree of the YAML document in `text`, null when it is empty. Every place is `fixed_place` if given,
/// else `name` with its line. Adds what is not accepted to `problems`; nothing when the text could not be
/// parsed.
std::optional<Node> read_tree(std::string_view text, const std::string& name,
                              const std::optional<Place>& fixed_place, std::vector<Problem>& problems);

/// Throws one Error that tells all problems in the order of their places, if there are any.
void throw_problems(std::vector<Problem>& problems);

/// Applies overrides of the form key.path=value to `root`.
void apply_overrides(Node& root, std::span<const std::string> overrides, std::vector<Problem>& problems);

}  // namespace polyhead::config
