#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace polyhead::metrics {

using NgramCounts = std::unordered_map<std::string_view, std::int64_t>;

/// A line as a sequence of units: words joined by a space, or characters joined by nothing. An n-gram is a
/// stretch of the joined text, so none is ever copied; counts are valid for as long as their Units.
class Units {
 public:
  Units(const std::vector<std::string>& units, std::string_view separator);
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;

  std::size_t size() const { return bounds_.size(); }
  /// How many n-grams of `order` there are.
  std::int64_t total(std::size_t order) const;
  /// Adds the n-grams of `order` to `counts`.
  void count(std::size_t order, NgramCounts& counts) const;

 private:
  std::string text_;
  std::vector<std::pair<std::size_t, std::size_t>> bounds_;  // [begin, end) of each unit in text_
};

/// Σ min(count in a, count in b) over all n-grams.
std::int64_t count_matches(const NgramCounts& a, const NgramCounts& b);

}  // namespace polyhead::metrics
