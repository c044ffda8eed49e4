#pragma once

#include <cstdint>
#include <vector>

namespace polyhead::metrics {

/// Words as numbers that are equal where the words are.
using WordIds = std::vector<std::int32_t>;

enum class Edit { keep, substitute, remove, insert };

/// Levenshtein distance from hypotheses of one length to a reference, computed near the diagonal only.
/// Rows are kept from call to call: a hypothesis costs only what follows the first word that is new.
class BeamEditDistance {
 public:
  BeamEditDistance(const WordIds& reference, std::size_t hypothesis_length);

  /// The number of edits that turn `hypothesis` into the reference.
  std::int32_t operator()(const WordIds& hypothesis);
  /// The edits of the last call, first to last: `insert` takes a word of the reference, `remove` drops
  /// one of the hypothesis. Of equally good ones keep and substitute come first, then remove.
  std::vector<Edit> trace() const;

 private:
  /// Row i of the matrix, columns [begin, end). It is stored from column begin - 1 to the end of the next
  /// row, as far as either is looked at, with infinite cost outside [begin, end).
  struct Row {
    std::int64_t begin, end;
    std::int64_t offset;  // of column 0 in costs_, were it stored
  };

  void lay_out_rows();
  void compute_row(std::size_t i);
  std::int32_t& cost(std::size_t i, std::int64_t j) {
    return costs_[static_cast<std::size_t>(rows_[i].offset + j)];
  }
  std::int32_t cost(std::size_t i, std::int64_t j) const {
    return costs_[static_cast<std::size_t>(rows_[i].offset + j)];
  }
  Edit edit_at(std::size_t i, std::int64_t j) const;

  WordIds reference_, hypothesis_;
  std::size_t known_rows_ = 0;
  std::vector<Row> rows_;
  std::vector<std::int32_t> costs_;
};

}  // namespace polyhead::metrics
