#include <algorithm>

#include "attention_head.h"
#include "polyhead/kernels/small_matmul.h"

namespace polyhead::ops::attention {
namespace {

namespace simd = kernels::simd;

/// Rows to take at once: a causal head skips what none of them sees, another takes all.
template <class T>
std::int64_t band_height(const Head<T>& head, std::int64_t rows) {
  constexpr std::int64_t most = 8;
  if (!head.causal) return std::max<std::int64_t>(rows, 1);
  const std::int64_t bands = std::max<std::int64_t>((rows + most - 1) / most, 1);
  return std::max<std::int64_t>((rows + bands - 1) / bands, 1);
}

/// Products of queries begin … end − 1 with the keys that the last of them sees.
template <class T>
void products(const Head<T>& head, const T* transposed, std::int64_t begin, std::int64_t end, T* out,
              std::int64_t ld) {
  const std::int64_t keys = head.visible(end - 1);
  if (transposed) {
    kernels::small_matmul<T>(end - begin, simd::round_up<T>(keys), head.key_dim,
                             {head.q[begin], head.q.stride}, transposed, ld, out + begin * ld, ld, false);
  } else {
    for (std::int64_t i = begin; i < end; ++i)
      kernels::dot_rows(keys, head.key_dim, head.k.data, head.k.stride, head.q[i], out + i * ld);
  }
}

/// Weights of queries begin … end − 1 from their products, in place; zero behind what a query sees. Each step
/// runs over all rows before the next, so that no row waits for its own maximum or sum.
template <class T>
void softmax(const Head<T>& head, std::int64_t begin, std::int64_t end, T* weights, std::int64_t ld,
             T* factors) {
  constexpr std::int64_t step = simd::lanes<T>;
  for (std::int64_t i = begin; i < end; ++i)
    factors[i - begin] = shift_of(finish_scores(head, i, 0, head.visible(i), weights + i * ld));
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t count = simd::round_up<T>(head.visible(i));
    const T sum = exp_row(weights + i * ld, factors[i - begin], count);
    factors[i - begin] = weight_scale(head, i, sum);
  }
  for (std::int64_t i = begin; i < end; ++i) {
    T* row = weights + i * ld;
    const std::int64_t count = simd::round_up<T>(head.visible(i));
    for (std::int64_t j = 0; j < count; j += step)
      simd::store(row + j, simd::load(row + j) * factors[i - begin]);
    for (std::int64_t j = count; j < ld; j += step) simd::store(row + j, simd::Vec<T>{});
  }
}

}  // namespace

template <class T>
void forward_short(Arena& scratch, const Head<T>& head, const T* transposed, T* kept, Rows<T> out) {
  const ArenaScope scope(scratch);
  const std::int64_t ld = simd::round_up<T>(head.keys), height = band_height(head, head.queries);
  const bool dropping = head.dropout.threshold > 0;
  auto* bits = scratch.allocate<std::uint16_t>(dropping ? static_cast<std::size_t>(ld) : 0);
  T* factors = scratch.allocate<T>(static_cast<std::size_t>(height));
  T* effective = scratch.allocate<T>(dropping ? static_cast<std::size_t>(height * ld) : 0);
  for (std::int64_t begin = 0; begin < head.queries; begin += height) {
    const std::int64_t end = std::min(begin + height, head.queries), keys = head.visible(end - 1);
    products(head, transposed, begin, end, kept, ld);
    softmax(head, begin, end, kept, ld, factors);
    for (std::int64_t i = begin; i < end && (dropping || head.weights); ++i) {
      T* row = kept + i * ld;
      if (head.weights) std::copy_n(row, head.keys, head.weights[i]);
      if (!dropping) continue;
      kernels::random_bits(head.dropout.key, head.dropout.sentence, static_cast<std::uint32_t>(i),
                           head.dropout.head, {bits, static_cast<std::size_t>(head.visible(i))});
      drop(row, bits, head.dropout.threshold, head.visible(i));
      effective_weights(row, static_cast<T>(head.dropout.scale), effective + (i - begin) * ld, ld);
    }
    const T* weights = dropping ? effective : kept + begin * ld;
    kernels::small_matmul<T>(end - begin, head.value_dim, keys, {weights, ld}, head.v.data, head.v.stride,
                             out[begin], out.stride, false);
  }
}

template <class T>
void backward_short(Arena& scratch, const Head<T>& head, const T* transposed_values, const T* kept,
                    HeadGradients<T>& gradients) {
  const ArenaScope scope(scratch);
  const std::int64_t ld = simd::round_up<T>(head.keys), height = band_height(head, head.queries);
  const auto [dy, dq, dk, dv] = gradients.rows;
  T* ds = scratch.allocate<T>(static_cast<std::size_t>(head.queries * ld));
  T* w = scratch.allocate<T>(static_cast<std::size_t>(head.queries * ld));
  for (std::int64_t begin = 0; begin < head.queries; begin += height) {
    const std::int64_t end = std::min(begin + height, head.queries), keys = head.visible(end - 1);
    const std::int64_t padded = simd::round_up<T>(keys);
    kernels::small_matmul<T>(end - begin, padded, head.value_dim, {dy[begin], dy.stride}, transposed_values,
                             ld, ds + begin * ld, ld, false);
    for (std::int64_t i = begin; i < end; ++i) {
      T *ds_row = ds + i * ld, *w_row = w + i * ld;
      const T delta = weights_dot(kept + i * ld, ds_row, static_cast<T>(head.dropout.scale), padded);
      gradients.gate_gradient += delta;
      score_gradients(head, kept + i * ld, delta, gradients.gate, ds_row, w_row, padded);
      for (std::int64_t j = padded; j < ld; j += simd::lanes<T>) {
        simd::store(ds_row + j, simd::Vec<T>{});
        simd::store(w_row + j, simd::Vec<T>{});
      }
    }
    if (dq)
      kernels::small_matmul<T>(end - begin, head.key_dim, keys, {ds + begin * ld, ld}, head.k.data,
                               head.k.stride, dq[begin], dq.stride, true);
  }
  const std::int64_t key_height = band_height(head, head.keys);
  for (std::int64_t begin = 0; begin < head.keys; begin += key_height) {
    const std::int64_t rows = std::min(key_height, head.keys - begin), first = head.first_query(begin);
    if (dk)
      kernels::small_matmul<T>(rows, head.key_dim, head.queries - first, {ds + first * ld + begin, 1, ld},
                               head.q[first], head.q.stride, dk[begin], dk.stride, true);
    if (dv)
      kernels::small_matmul<T>(rows, head.value_dim, head.queries - first, {w + first * ld + begin, 1, ld},
                               dy[first], dy.stride, dv[begin], dv.stride, true);
  }
}

template void forward_short(Arena&, const Head<float>&, const float*, float*, Rows<float>);
template void backward_short(Arena&, const Head<float>&, const float*, const float*, HeadGradients<float>&);
template void forward_short(Arena&, const Head<double>&, const double*, double*, Rows<double>);
template void backward_short(Arena&, const Head<double>&, const double*, const double*,
                             HeadGradients<double>&);

}  // namespace polyhead::ops::attention
