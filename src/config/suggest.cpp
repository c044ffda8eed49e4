#include "suggest.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace polyhead::config {
namespace {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment; Damerau 1964, Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

struct Split {
  std::string_view section, name;
};
Split split(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

std::string nearest(const std::string& path, const std::vector<std::string>& known) {
  const auto [section, name] = split(path);
  const std::size_t most = (name.size() + 2) / 3;
  std::string best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : known) {
    const auto [other_section, other_name] = split(candidate);
    const std::size_t edits = edit_distance(name, other_name);
    const std::size_t distance = edits + (section == other_section ? 0 : 2);
    if (edits > most || distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace polyhead::config
