#include "polyhead/nn/attention/kv_cache.h"

#include <limits>

namespace polyhead::nn {
namespace {

/// slots·capacity, once it fits a Segment.
std::int64_t checked_rows(std::int64_t slots, std::int64_t capacity) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  require(slots >= 0 && capacity >= 1 && slots <= most / capacity, "a decoding cache of ", slots,
          " hypotheses of ", capacity, " tokens, expected at most ", most, " rows (decoding.batch_tokens)");
  return slots * capacity;
}

/// Copies rows; without heads they have no columns.
void copy_rows(const Tensor& from, std::int64_t first, const Tensor& to, std::int64_t at,
               std::int64_t count) {
  if (to.cols() > 0) copy(from.slice_rows(first, count), to.slice_rows(at, count));
}

}  // namespace

KvCache::KvCache(Arena& arena, std::int64_t slots, std::int64_t capacity, std::int64_t key_width,
                 std::int64_t value_width, DType dtype)
    : keys_(arena.tensor({checked_rows(slots, capacity), key_width}, dtype)),
      values_(arena.tensor({slots * capacity, value_width}, dtype)),
      capacity_(capacity),
      segments_(arena.allocate<Segment>(static_cast<std::size_t>(slots))) {
  for (std::int64_t s = 0; s < slots; ++s) segments_[s] = {static_cast<std::int32_t>(s * capacity), 0};
}

void KvCache::append(const KeyValues& rows, std::span<const std::int32_t> slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Segment& s = segments_[slots[i]];
    require(s.length < capacity_, "decoding past the ", capacity_, " rows of the cache");
    const auto row = static_cast<std::int64_t>(i);
    copy_rows(rows.keys.value(), row, keys_, s.begin + s.length, 1);
    copy_rows(rows.values.value(), row, values_, s.begin + s.length, 1);
    ++s.length;
  }
}

void KvCache::copy_slot(std::int32_t from, std::int32_t to) {
  const Segment& source = segments_[from];
  Segment& target = segments_[to];
  target.length = source.length;
  copy_rows(keys_, source.begin, keys_, target.begin, source.length);
  copy_rows(values_, source.begin, values_, target.begin, source.length);
}

}  // namespace polyhead::nn
