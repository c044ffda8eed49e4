#include "polyhead/config/constraint.h"

#include "numbers.h"

namespace polyhead::config {

Constraint at_least(double bound) {
  return {"at least " + number_text(bound), [bound](double value) { return value >= bound; }};
}
Constraint at_most(double bound) {
  return {"at most " + number_text(bound), [bound](double value) { return value <= bound; }};
}
Constraint above(double bound) {
  return {"above " + number_text(bound), [bound](double value) { return value > bound; }};
}
Constraint below(double bound) {
  return {"below " + number_text(bound), [bound](double value) { return value < bound; }};
}
Constraint between(double low, double high) {
  return {"between " + number_text(low) + " and " + number_text(high),
          [low, high](double value) { return low <= value && value <= high; }};
}
Constraint not_empty() { return {"not empty", {}}; }

}  // namespace polyhead::config
