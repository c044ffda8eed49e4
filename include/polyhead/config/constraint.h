#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "polyhead/config/codec.h"

namespace polyhead::config {

/// What a field's value must satisfy beyond its type.
struct Constraint {
  std::string text;                   ///< "at least 1", as it follows "expected"
  std::function<bool(double)> holds;  ///< of a number; empty for not_empty()
};

Constraint at_least(double bound);
Constraint at_most(double bound);
Constraint above(double bound);
Constraint below(double bound);
Constraint between(double low, double high);  ///< both included
Constraint not_empty();                       ///< of text or a list

/// Whether `value` satisfies `constraint`: a number itself, a list by each of its entries (not_empty: as a
/// whole), an optional when it is set, any other type as its Codec says.
template <class T>
bool satisfies(const T& value, const Constraint& constraint) {
  if constexpr (std::is_arithmetic_v<T>)
    return !constraint.holds || constraint.holds(static_cast<double>(value));
  else if constexpr (std::is_enum_v<T>)
    return true;  // no constraint is of names
  else
    return Codec<T>::satisfies(value, constraint);
}
inline bool satisfies(const std::string& value, const Constraint& constraint) {
  return constraint.holds || !value.empty();
}
template <class T>
bool satisfies(const std::optional<T>& value, const Constraint& constraint) {
  return !value || satisfies(*value, constraint);
}
template <class T>
bool satisfies(const std::vector<T>& values, const Constraint& constraint) {
  if (!constraint.holds) return !values.empty();
  return std::all_of(values.begin(), values.end(),
                     [&](const T& value) { return satisfies(value, constraint); });
}

}  // namespace polyhead::config
