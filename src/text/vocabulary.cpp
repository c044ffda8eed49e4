#include "polyhead/text/vocabulary.h"

#include <algorithm>
#include <iterator>

#include "polyhead/core/error.h"

namespace polyhead::text {
namespace {

bool is_special(std::string_view piece) {
  return std::find(std::begin(special_pieces), std::end(special_pieces), piece) != std::end(special_pieces);
}

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& ordinary)
    : pieces_(std::begin(special_pieces), std::end(special_pieces)) {
  pieces_.reserve(pieces_.size() + ordinary.size());
  for (const std::string& piece : ordinary) {
    require<DataError>(!piece.empty() && !is_special(piece), "vocabulary: id ", size(), " has the piece \"",
                       piece, "\", which is empty or reserved");
    const auto [entry, added] = ids_.emplace(piece, size());
    require<DataError>(added, "vocabulary: the piece \"", piece, "\" has two ids, ", entry->second, " and ",
                       size());
    pieces_.push_back(piece);
  }
}

Vocabulary Vocabulary::most_frequent(const std::unordered_map<std::string, std::int64_t>& counts,
                                     std::int32_t max_size) {
  require(max_size > special_ids, "tokenizer.vocab_size: ", max_size, " leaves no room beside the ",
          special_ids, " special pieces");
  std::vector<std::pair<std::string, std::int64_t>> ranked;
  for (const auto& entry : counts) {
    if (!is_special(entry.first)) ranked.emplace_back(entry);
  }
  // The order of UTF-8 bytes is the order of code points.
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> ordinary;
  const auto room = static_cast<std::size_t>(max_size - special_ids);
  for (std::size_t i = 0; i < std::min(room, ranked.size()); ++i) ordinary.push_back(ranked[i].first);
  return Vocabulary(ordinary);
}

std::int32_t Vocabulary::id(std::string_view piece) const {
  const auto found = ids_.find(std::string(piece));
  return found == ids_.end() ? unk_id : found->second;
}

const std::string& Vocabulary::piece(std::int32_t id) const {
  require<DataError>(id >= 0 && id < size(), "vocabulary: id ", id, " is not in 0 to ", size() - 1);
  return pieces_[static_cast<std::size_t>(id)];
}

}  // namespace polyhead::text
