#include "polyhead/nn/attention/kv_cache.h"

#include <cstring>
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

/// Copies whole rows between matrices of as many columns, of which there are none without heads.
void copy_rows(const Tensor& from, std::int64_t first, const Tensor& to, std::int64_t at,
               std::int64_t count) {
  const std::int64_t bytes = to.cols() * static_cast<std::int64_t>(size_of(to.dtype));
  if (bytes > 0)
    std::memcpy(static_cast<std::byte*>(to.data) + at * bytes,
                static_cast<const std::byte*>(from.data) + first * bytes,
                static_cast<std::size_t>(count * bytes));
}

void check_rows(const Tensor& rows, const Tensor& cache) {
  require(rows.cols() == cache.cols() && rows.dtype == cache.dtype, "a decoding cache of ", name(cache.dtype),
          cache.shape, " was given rows of ", name(rows.dtype), rows.shape);
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
  const Tensor &keys = rows.keys.value(), &values = rows.values.value();
  check_rows(keys, keys_);
  check_rows(values, values_);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Segment& s = segments_[slots[i]];
    require(s.length < capacity_, "decoding past the ", capacity_, " rows of the cache");
    const auto row = static_cast<std::int64_t>(i);
    copy_rows(keys, row, keys_, s.begin + s.length, 1);
    copy_rows(values, row, values_, s.begin + s.length, 1);
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
