#pragma once

#include <string>
#include <vector>

#include "polyhead/core/error.h"

namespace polyhead::metrics {

/// The `name` members of a table's rows.
template <class Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table) names.emplace_back(row.name);
  return names;
}

/// The row called `name`. Throws Error that lists the names there are; `kind` says what they name.
template <class Table>
const auto& find_row(const Table& table, const std::string& kind, const std::string& name) {
  for (const auto& row : table)
    if (row.name == name) return row;
  std::string known;
  for (const std::string& other : names_of(table)) known += (known.empty() ? "" : ", ") + other;
  throw Error(concat("unknown ", kind, " '", name, "', expected one of: ", known));
}

}  // namespace polyhead::metrics
