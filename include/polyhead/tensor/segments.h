#pragma once

#include <cstdint>
#include <span>

namespace polyhead {

/// One sentence among packed rows: rows begin … begin + length − 1.
struct Segment {
  std::int32_t begin = 0, length = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// The sentences of a packed batch, in order. `first` is the number of sentence 0 within the update, so that
/// randomness keyed by sentence does not depend on how an update is cut into lanes.
struct Segments {
  std::span<const Segment> spans;
  std::int32_t first = 0;
  std::int64_t count() const { return static_cast<std::int64_t>(spans.size()); }
  const Segment& operator[](std::int64_t i) const { return spans[static_cast<std::size_t>(i)]; }
  /// Rows of all sentences together.
  std::int64_t rows() const {
    std::int64_t sum = 0;
    for (const Segment& s : spans) sum += s.length;
    return sum;
  }
};

}  // namespace polyhead
