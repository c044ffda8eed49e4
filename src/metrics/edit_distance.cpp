#include "edit_distance.h"

#include <algorithm>
#include <cmath>

namespace polyhead::metrics {

namespace {

constexpr std::int64_t default_beam = 25;
constexpr std::int32_t infinity = 1 << 30;

}  // namespace

BeamEditDistance::BeamEditDistance(const WordIds& reference, std::size_t hypothesis_length)
    : reference_(reference), hypothesis_(hypothesis_length, -1), rows_(hypothesis_length + 1) {
  lay_out_rows();
  for (std::int64_t j = 0; j < rows_[0].end; ++j) cost(0, j) = static_cast<std::int32_t>(j);
}

void BeamEditDistance::lay_out_rows() {
  const auto columns = static_cast<std::int64_t>(reference_.size()) + 1;
  const std::size_t last = rows_.size() - 1;
  const double ratio = last > 0 ? static_cast<double>(reference_.size()) / static_cast<double>(last) : 1.0;
  // Lengths so different that neighbouring rows of the usual width would not overlap need wider ones.
  const std::int64_t beam = static_cast<double>(default_beam) < ratio / 2
                                ? static_cast<std::int64_t>(std::ceil(ratio / 2 + default_beam))
                                : default_beam;
  rows_[0] = {0, columns, 0};
  for (std::size_t i = 1; i <= last; ++i) {
    const auto diagonal = static_cast<std::int64_t>(std::floor(static_cast<double>(i) * ratio));
    rows_[i].begin = std::max<std::int64_t>(0, diagonal - beam);
    rows_[i].end = i == last ? columns : std::min(columns, diagonal + beam);
  }
  std::int64_t size = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const std::int64_t first = rows_[i].begin - 1;
    const std::int64_t end = i < last ? std::max(rows_[i].end, rows_[i + 1].end) : rows_[i].end;
    rows_[i].offset = size - first;
    size += end - first;
  }
  costs_.assign(static_cast<std::size_t>(size), infinity);
}

void BeamEditDistance::compute_row(std::size_t i) {
  const std::int32_t word = hypothesis_[i - 1];
  const std::int32_t* above = costs_.data() + rows_[i - 1].offset;
  std::int32_t* row = costs_.data() + rows_[i].offset;
  std::int64_t j = rows_[i].begin;
  if (j == 0) row[j++] = above[0] + 1;
  for (; j < rows_[i].end; ++j) {
    const std::int32_t diagonal = above[j - 1] + (word != reference_[static_cast<std::size_t>(j - 1)]);
    row[j] = std::min({diagonal, above[j] + 1, row[j - 1] + 1, infinity});
  }
}

std::int32_t BeamEditDistance::operator()(const WordIds& hypothesis) {
  const auto first_new = std::mismatch(hypothesis_.begin(), hypothesis_.end(), hypothesis.begin()).first;
  const auto known = std::min(known_rows_, static_cast<std::size_t>(first_new - hypothesis_.begin()));
  hypothesis_ = hypothesis;
  for (std::size_t i = known + 1; i < rows_.size(); ++i) compute_row(i);
  known_rows_ = hypothesis.size();
  return cost(rows_.size() - 1, static_cast<std::int64_t>(reference_.size()));
}

Edit BeamEditDistance::edit_at(std::size_t i, std::int64_t j) const {
  if (i == 0) return Edit::insert;
  if (j == 0) return Edit::remove;
  const bool equal = hypothesis_[i - 1] == reference_[static_cast<std::size_t>(j - 1)];
  if (cost(i, j) == cost(i - 1, j - 1) + (equal ? 0 : 1)) return equal ? Edit::keep : Edit::substitute;
  return cost(i, j) == cost(i - 1, j) + 1 ? Edit::remove : Edit::insert;
}

std::vector<Edit> BeamEditDistance::trace() const {
  std::vector<Edit> edits;
  std::size_t i = rows_.size() - 1;
  auto j = static_cast<std::int64_t>(reference_.size());
  while (i > 0 || j > 0) {
    edits.push_back(edit_at(i, j));
    if (edits.back() != Edit::insert) --i;
    if (edits.back() != Edit::remove) --j;
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

}  // namespace polyhead::metrics
