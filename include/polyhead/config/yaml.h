#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/config/fields.h"

/// YAML text to configuration structs and back. The YAML accepted is one mapping in one document without
/// anchors, aliases, merge keys and tags, at most 256 KiB and 32 levels deep.
namespace polyhead::config {

/// A setting that two configurations have with different values, both as YAML.
struct Difference {
  std::string key, first, second;
  bool operator==(const Difference&) const = default;
};

/// The text of a configuration file, or of a pipe or device as far as it is longer than any configuration. Waits for who
/// writes to a pipe, and a second for somebody who does. Throws Error (usage) when there is no such file, when it is a
/// folder, or cannot be opened, and FileError when the disk fails.
std::string read_file(const std::filesystem::path& path);
/// Fills the struct behind `root` from YAML text; see parse().
void parse(const Field& root, std::string_view text, std::string_view name,
           std::span<const std::string> overrides);
std::string dump(const Field& root);
std::string document(const Field& root);
std::vector<Difference> difference(const Field& first, const Field& second);

/// A T from YAML `text`; what it leaves out keeps its default. `overrides` are of the form key.path=value
/// with a YAML value that replaces whatever the key holds, the last one winning. `name` is the file's in
/// messages. Throws one Error (usage) that tells everything that is wrong, a line for each: `file.yaml:12:
/// model.heads: "many", expected an integer`.
template <HasFields T>
T parse(std::string_view text, std::string_view name, std::span<const std::string> overrides = {}) {
  T value{};
  parse(describe(value), text, name, overrides);
  return value;
}

/// parse() of a file.
template <HasFields T>
T load(const std::filesystem::path& path, std::span<const std::string> overrides = {}) {
  return parse<T>(read_file(path), path.string(), overrides);
}

/// `value` as YAML with every field in the order of its list: parse(dump(x)) == x.
template <HasFields T>
std::string dump(const T& value) {
  T copy = value;
  return dump(describe(copy));
}

/// A Markdown table of every key with its type, constraints, default and meaning.
template <HasFields T>
std::string document() {
  T defaults{};
  return document(describe(defaults));
}

/// The settings in which `first` and `second` differ, in the order of the list.
template <HasFields T>
std::vector<Difference> difference(const T& first, const T& second) {
  T a = first, b = second;
  return difference(describe(a), describe(b));
}

}  // namespace polyhead::config
