#include "ngrams.h"

#include <algorithm>

namespace polyhead::metrics {

Units::Units(const std::vector<std::string>& units, std::string_view separator) {
  bounds_.reserve(units.size());
  for (const std::string& unit : units) {
    if (!bounds_.empty()) text_ += separator;
    bounds_.emplace_back(text_.size(), text_.size() + unit.size());
    text_ += unit;
  }
}

std::int64_t Units::total(std::size_t order) const {
  return size() < order ? 0 : static_cast<std::int64_t>(size() - order + 1);
}

void Units::count(std::size_t order, NgramCounts& counts) const {
  const std::string_view text = text_;
  for (std::size_t first = 0; first + order <= size(); ++first) {
    const std::size_t begin = bounds_[first].first;
    ++counts[text.substr(begin, bounds_[first + order - 1].second - begin)];
  }
}

std::int64_t count_matches(const NgramCounts& a, const NgramCounts& b) {
  std::int64_t matches = 0;
  for (const auto& [ngram, count] : a)
    if (const auto other = b.find(ngram); other != b.end()) matches += std::min(count, other->second);
  return matches;
}

}  // namespace polyhead::metrics
