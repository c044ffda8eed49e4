#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "polyhead/core/rng.h"
#include "polyhead/kernels/random.h"
#include "polyhead/kernels/simd.h"
#include "polyhead/tensor/arena.h"
#include "polyhead/tensor/segments.h"

/// One head of one sentence: what the two ways of computing it share.
namespace polyhead::ops::attention {

/// Rows of the longest sentence.
std::int64_t longest(const Segments& segments);
/// Throws Error unless sentences are within their rows, and those of queries in order.
void check_segments(const Segments& queries, const Segments& keys, std::int64_t query_rows,
                    std::int64_t key_rows);

/// Rows of a head within a matrix of all heads; empty when data is null.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
  T* operator[](std::int64_t i) const { return data + i * stride; }
  explicit operator bool() const { return data != nullptr; }
};

/// Dropout of the weights; threshold 0: none.
struct WeightDropout {
  RngKey key;
  std::uint32_t sentence = 0, head = 0, threshold = 0;
  double scale = 1;
};

template <class T>
struct Head {
  std::int64_t queries = 0, keys = 0, key_dim = 0, value_dim = 0;
  Rows<const T> q, k, v;
  Rows<const T> mask;
  T factor = 1;  ///< of the scores
  bool causal = false;
  WeightDropout dropout;
  Rows<T> weights;  ///< tap; its rows are as long as the tensor has them

  /// Keys that query i sees: 0 … visible(i) − 1.
  std::int64_t visible(std::int64_t i) const {
    return causal ? std::clamp<std::int64_t>(i + 1 + keys - queries, 0, keys) : keys;
  }
  /// The first query that sees key j.
  std::int64_t first_query(std::int64_t j) const {
    return causal ? std::clamp<std::int64_t>(j - (keys - queries), 0, queries) : 0;
  }
};

/// Where backward of a head adds, and the gradient it starts from.
template <class T>
struct HeadGradients {
  struct {
    Rows<const T> dy;
    Rows<T> dq, dk, dv;
  } rows;
  T gate = 1;
  T gate_gradient = 0;  ///< receives Σ dy·head
};

/// Below this many queries the scores are dot products; from it on the keys are transposed first.
inline constexpr std::int64_t queries_worth_a_transpose = 4;

/// Keys a sentence may have for its weights to be kept; longer ones are recomputed.
inline constexpr std::int64_t longest_kept = 256;

/// Values kept of one head: the weights [queries, keys rounded up to whole vectors], or of a sentence that is
/// too long, the log of the sum of exponentials of every row followed by the head's output.
template <class T>
std::int64_t kept_size(std::int64_t queries, std::int64_t keys, std::int64_t value_dim) {
  return keys <= longest_kept ? queries * kernels::simd::round_up<T>(keys) : queries * (1 + value_dim);
}

/// Writes the head's output (without gate) into out. `kept` is as kept_size says. A dropped weight is kept
/// with its sign flipped, so that backward needs neither the random numbers again nor a stored mask.
/// `transposed` are the keys [key_dim, keys rounded up], or null for few queries.
template <class T>
void forward_short(Arena& scratch, const Head<T>& head, const T* transposed, T* kept, Rows<T> out);
/// Adds the gradients of q, k and v; `transposed_values` are the values [value_dim, keys rounded up].
template <class T>
void backward_short(Arena& scratch, const Head<T>& head, const T* transposed_values, const T* kept,
                    HeadGradients<T>& gradients);

/// The same in blocks of keys with a running softmax, as FlashAttention has it (Dao et al. 2022,
/// arXiv:2205.14135).
template <class T>
void forward_long(Arena& scratch, const Head<T>& head, T* kept, Rows<T> out);
template <class T>
void backward_long(Arena& scratch, const Head<T>& head, const T* kept, HeadGradients<T>& gradients);

// ---- rows of scores, padded to whole vectors

/// Turns the products of query i with keys begin … end − 1 into scores, in place: times factor, plus mask, −∞
/// where the query may not look and in the padding. Returns the largest.
template <class T>
POLYHEAD_INLINE T finish_scores(const Head<T>& head, std::int64_t i, std::int64_t begin, std::int64_t end,
                                T* row) {
  namespace simd = kernels::simd;
  constexpr std::int64_t step = simd::lanes<T>;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T* mask = head.mask ? head.mask[i] + begin : nullptr;
  const std::int64_t count = std::clamp<std::int64_t>(head.visible(i) - begin, 0, end - begin);
  simd::Vec<T> largest = simd::broadcast(-infinity);
  std::int64_t j = 0;
  for (; j + step <= count; j += step) {
    simd::Vec<T> score = simd::load(row + j) * head.factor;
    if (mask) score += simd::load(mask + j);
    largest = simd::max<T>(score, largest);
    simd::store(row + j, score);
  }
  if (j < count) {
    simd::Vec<T> score = simd::load(row + j) * head.factor;
    if (mask) score += simd::load_first(mask + j, count - j, T{0});
    score = simd::select_first<T>(count - j, score, simd::broadcast(-infinity));
    largest = simd::max<T>(score, largest);
    simd::store(row + j, score);
    j += step;
  }
  for (; j < end - begin; j += step) simd::store(row + j, simd::broadcast(-infinity));
  return simd::max<T>(largest);
}

/// What to subtract from scores before exp: 0 for a row without anything to see, where −∞ − (−∞) is NaN.
template <class T>
T shift_of(T largest) {
  return largest == -std::numeric_limits<T>::infinity() ? T{0} : largest;
}

/// What makes weights of the exponentials of query i's scores, given their sum. That is 0 where the query sees no key,
/// and then its weights are too; or where all scores that it sees have overflowed to −∞, which makes them NaN.
template <class T>
T weight_scale(const Head<T>& head, std::int64_t i, T sum) {
  if (sum != 0) return 1 / sum;
  const std::int64_t count = head.visible(i);
  const T* mask = head.mask ? head.mask[i] : nullptr;
  const bool sees =
      mask ? std::any_of(mask, mask + count, [](T m) { return m > -std::numeric_limits<T>::infinity(); })
           : count > 0;
  return sees ? std::numeric_limits<T>::quiet_NaN() : T{0};
}

/// row <- exp(row − shift) over whole vectors; returns the sum.
template <class T>
POLYHEAD_INLINE T exp_row(T* row, T shift, std::int64_t count) {
  namespace simd = kernels::simd;
  simd::Vec<T> sums{};
  for (std::int64_t j = 0; j < count; j += simd::lanes<T>) {
    const simd::Vec<T> e = simd::exp(simd::load(row + j) - shift);
    sums += e;
    simd::store(row + j, e);
  }
  return simd::sum<T>(sums);
}

/// Flips the sign of the weights that dropout takes; `bits` are those of the row from the same key on.
template <class T>
void drop(T* row, const std::uint16_t* bits, std::uint32_t threshold, std::int64_t count) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) row[j] = bits[j] < threshold ? -row[j] : row[j];
}

/// The weights that reach the values: 0 where dropped (negative), times `scale`. NaN stays.
template <class T>
void effective_weights(const T* row, T scale, T* out, std::int64_t count) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) out[j] = row[j] < 0 ? T{0} : row[j] * scale;
}

/// Σ a_j·b_j, lane by lane.
template <class T>
T dot(const T* a, const T* b, std::int64_t n) {
  namespace simd = kernels::simd;
  simd::Vec<T> sums{};
  std::int64_t j = 0;
  for (; j + simd::lanes<T> <= n; j += simd::lanes<T>) sums += simd::load(a + j) * simd::load(b + j);
  if (j < n) sums += simd::load_first(a + j, n - j, T{0}) * simd::load_first(b + j, n - j, T{0});
  return simd::sum<T>(sums);
}

/// Σ_j w_j·dw_j over whole vectors: w = effective weights of the kept `row`, dw the gradient of w.
template <class T>
POLYHEAD_INLINE T weights_dot(const T* row, const T* dw, T scale, std::int64_t count) {
  namespace simd = kernels::simd;
  simd::Vec<T> sum{};
  for (std::int64_t j = 0; j < count; j += simd::lanes<T>) {
    const simd::Vec<T> p = simd::load(row + j);
    sum += (p < T{0} ? simd::Vec<T>{} : p * scale) * simd::load(dw + j);
  }
  return simd::sum<T>(sum);
}

/// Of one row over whole vectors: dw, the gradient of the effective weights, becomes that of the products
/// q·k, and w the effective weights times the gate.
///   ds = (w ⊙ dw − |p|·delta)·gate·factor,   delta = Σ w ⊙ dw = dy·head
template <class T>
POLYHEAD_INLINE void score_gradients(const Head<T>& head, const T* row, T delta, T gate, T* dw, T* w,
                                     std::int64_t count) {
  namespace simd = kernels::simd;
  const T scale = static_cast<T>(head.dropout.scale), outer = gate * head.factor;
  for (std::int64_t j = 0; j < count; j += simd::lanes<T>) {
    const simd::Vec<T> p = simd::load(row + j);
    const simd::Vec<T> effective = p < T{0} ? simd::Vec<T>{} : p * scale;
    const simd::Vec<T> magnitude = p < T{0} ? -p : p;
    simd::store(dw + j, (effective * simd::load(dw + j) - magnitude * delta) * outer);
    simd::store(w + j, effective * gate);
  }
}

}  // namespace polyhead::ops::attention
