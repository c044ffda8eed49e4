#pragma once

#include <cstdint>
#include <span>

#include "polyhead/autograd/tape.h"
#include "polyhead/tensor/segments.h"

namespace polyhead::nn {

/// Projected keys [N, h·d_k] and values [N, h·d_v].
struct KeyValues {
  Var keys, values;
};

/// The keys and values of one layer's past rows, for decoding one token at a time. Each of `slots` hypotheses
/// owns `capacity` rows; slot s with n rows is the segment {s·capacity, n} of tensors [slots·capacity, ·], so
/// attention reads the cache where it is. Throws Error when the rows are more than 32 bits can number.
class KvCache {
 public:
  KvCache(Arena& arena, std::int64_t slots, std::int64_t capacity, std::int64_t key_width,
          std::int64_t value_width, DType dtype);
  /// Writes row i of keys and values as the next row of slots[i]. Throws Error when a slot is full.
  void append(const KeyValues& rows, std::span<const std::int32_t> slots);
  /// Makes slot `to` hold what `from` holds.
  void copy_slot(std::int32_t from, std::int32_t to);
  const Segment& segment(std::int32_t slot) const { return segments_[slot]; }
  const Tensor& keys() const { return keys_; }
  const Tensor& values() const { return values_; }

 private:
  Tensor keys_, values_;
  std::int64_t capacity_;
  Segment* segments_;
};

}  // namespace polyhead::nn
