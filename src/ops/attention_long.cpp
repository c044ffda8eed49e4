#include <algorithm>
#include <cmath>

#include "attention_head.h"
#include "polyhead/kernels/small_matmul.h"

namespace polyhead::ops::attention {
namespace {

namespace simd = kernels::simd;

constexpr std::int64_t query_block = 64, key_block = 64;

/// Temporaries of a block of queries: scores, effective weights and transposed keys or values of one block of
/// keys, and the random bits of all keys.
template <class T>
struct Block {
  Block(Arena& scratch, const Head<T>& head)
      : scores(scratch.allocate<T>(query_block * key_block)),
        weights(scratch.allocate<T>(query_block * key_block)),
        transposed(scratch.allocate<T>(
            static_cast<std::size_t>(std::max(head.key_dim, head.value_dim) * key_block))),
        bits(scratch.allocate<std::uint16_t>(
            head.dropout.threshold > 0 ? static_cast<std::size_t>(query_block * head.keys) : 0)) {}
  T *scores, *weights, *transposed;
  std::uint16_t* bits;
};

template <class T>
void draw_bits(const Head<T>& head, std::int64_t first, std::int64_t rows, std::uint16_t* bits) {
  if (head.dropout.threshold == 0) return;
  for (std::int64_t i = 0; i < rows; ++i)
    kernels::random_bits(head.dropout.key, head.dropout.sentence, static_cast<std::uint32_t>(first + i),
                         head.dropout.head,
                         {bits + i * head.keys, static_cast<std::size_t>(head.visible(first + i))});
}

/// Products of queries first … first + rows − 1 with keys begin … end − 1 into block.scores.
template <class T>
void products(const Head<T>& head, std::int64_t first, std::int64_t rows, std::int64_t begin,
              std::int64_t end, const Block<T>& block) {
  if (rows < queries_worth_a_transpose) {
    for (std::int64_t i = 0; i < rows; ++i)
      kernels::dot_rows(end - begin, head.key_dim, head.k[begin], head.k.stride, head.q[first + i],
                        block.scores + i * key_block);
    return;
  }
  kernels::transpose(end - begin, head.key_dim, head.k[begin], head.k.stride, block.transposed, key_block);
  kernels::small_matmul<T>(rows, simd::round_up<T>(end - begin), head.key_dim, {head.q[first], head.q.stride},
                           block.transposed, key_block, block.scores, key_block, false);
}

template <class T>
void scale_row(T* row, T factor, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) row[j] *= factor;
}

/// Weights of a block of scores, given the logarithm of each row's sum, and the signs of those dropped.
template <class T>
void recompute_weights(const Head<T>& head, std::int64_t first, std::int64_t rows, std::int64_t begin,
                       std::int64_t end, const T* log_sums, const Block<T>& block) {
  products(head, first, rows, begin, end, block);
  for (std::int64_t i = 0; i < rows; ++i) {
    T* row = block.scores + i * key_block;
    finish_scores(head, first + i, begin, end, row);
    exp_row(row, shift_of(log_sums[first + i]), simd::round_up<T>(end - begin));
  }
}

template <class T>
void drop_block(const Head<T>& head, std::int64_t first, std::int64_t rows, std::int64_t begin,
                std::int64_t end, const Block<T>& block) {
  if (head.dropout.threshold == 0) return;
  for (std::int64_t i = 0; i < rows; ++i)
    drop(block.scores + i * key_block, block.bits + i * head.keys + begin, head.dropout.threshold,
         std::clamp<std::int64_t>(head.visible(first + i) - begin, 0, end - begin));
}

template <class T>
void write_tap(const Head<T>& head, std::int64_t first, std::int64_t rows, const T* log_sums,
               const Block<T>& block) {
  for (std::int64_t begin = 0; begin < head.keys; begin += key_block) {
    const std::int64_t end = std::min(begin + key_block, head.keys);
    recompute_weights(head, first, rows, begin, end, log_sums, block);
    for (std::int64_t i = 0; i < rows; ++i)
      std::copy_n(block.scores + i * key_block, end - begin, head.weights[first + i] + begin);
  }
}

/// One block of queries: the head's output and the logarithms of the sums.
template <class T>
void forward_block(const Head<T>& head, std::int64_t first, std::int64_t rows, const Block<T>& block,
                   T* log_sums, Rows<T> out) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T largest[query_block], sum[query_block];
  std::fill_n(largest, rows, -infinity);
  std::fill_n(sum, rows, T{0});
  for (std::int64_t i = 0; i < rows; ++i) std::fill_n(out[first + i], head.value_dim, T{0});
  draw_bits(head, first, rows, block.bits);
  const std::int64_t keys = head.visible(first + rows - 1);
  for (std::int64_t begin = 0; begin < keys; begin += key_block) {
    const std::int64_t end = std::min(begin + key_block, keys);
    products(head, first, rows, begin, end, block);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* row = block.scores + i * key_block;
      const T before = largest[i];
      largest[i] = std::max(before, finish_scores(head, first + i, begin, end, row));
      const T shift = shift_of(largest[i]), fade = std::exp(before - shift);
      sum[i] = sum[i] * fade + exp_row(row, shift, simd::round_up<T>(end - begin));
      if (largest[i] > before) scale_row(out[first + i], fade, head.value_dim);
    }
    drop_block(head, first, rows, begin, end, block);
    const T* weights = block.scores;
    if (head.dropout.threshold > 0) {
      effective_weights(block.scores, static_cast<T>(head.dropout.scale), block.weights, rows * key_block);
      weights = block.weights;
    }
    kernels::small_matmul<T>(rows, head.value_dim, end - begin, {weights, key_block}, head.v[begin],
                             head.v.stride, out[first], out.stride, true);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    scale_row(out[first + i], weight_scale(head, first + i, sum[i]), head.value_dim);
    log_sums[first + i] = shift_of(largest[i]) + std::log(sum[i]);
  }
}

/// The block of keys begin … end − 1 in the backward pass of a block of queries; delta_i = dy_i·head_i.
template <class T>
void backward_block(const Head<T>& head, std::int64_t first, std::int64_t rows, std::int64_t begin,
                    std::int64_t end, const T* log_sums, const T* delta, const HeadGradients<T>& gradients,
                    T* ds, const Block<T>& block) {
  const auto [dy, dq, dk, dv] = gradients.rows;
  const std::int64_t padded = simd::round_up<T>(end - begin);
  recompute_weights(head, first, rows, begin, end, log_sums, block);
  drop_block(head, first, rows, begin, end, block);
  kernels::transpose(end - begin, head.value_dim, head.v[begin], head.v.stride, block.transposed, key_block);
  kernels::small_matmul<T>(rows, padded, head.value_dim, {dy[first], dy.stride}, block.transposed, key_block,
                           ds, key_block, false);
  for (std::int64_t i = 0; i < rows; ++i)
    score_gradients(head, block.scores + i * key_block, delta[i], gradients.gate, ds + i * key_block,
                    block.weights + i * key_block, padded);
  if (dq)
    kernels::small_matmul<T>(rows, head.key_dim, end - begin, {ds, key_block}, head.k[begin], head.k.stride,
                             dq[first], dq.stride, true);
  if (dk)
    kernels::small_matmul<T>(end - begin, head.key_dim, rows, {ds, 1, key_block}, head.q[first],
                             head.q.stride, dk[begin], dk.stride, true);
  if (dv)
    kernels::small_matmul<T>(end - begin, head.value_dim, rows, {block.weights, 1, key_block}, dy[first],
                             dy.stride, dv[begin], dv.stride, true);
}

}  // namespace

template <class T>
void forward_long(Arena& scratch, const Head<T>& head, T* kept, Rows<T> out) {
  const ArenaScope scope(scratch);
  const Block<T> block(scratch, head);
  T *log_sums = kept, *output = kept + head.queries;
  for (std::int64_t first = 0; first < head.queries; first += query_block) {
    const std::int64_t rows = std::min(query_block, head.queries - first);
    forward_block(head, first, rows, block, log_sums, out);
    for (std::int64_t i = first; i < first + rows; ++i)
      std::copy_n(out[i], head.value_dim, output + i * head.value_dim);
    if (head.weights) write_tap(head, first, rows, log_sums, block);
  }
}

template <class T>
void backward_long(Arena& scratch, const Head<T>& head, const T* kept, HeadGradients<T>& gradients) {
  const ArenaScope scope(scratch);
  const Block<T> block(scratch, head);
  T* ds = scratch.allocate<T>(query_block * key_block);
  const T *log_sums = kept, *output = kept + head.queries;
  for (std::int64_t first = 0; first < head.queries; first += query_block) {
    const std::int64_t rows = std::min(query_block, head.queries - first);
    T delta[query_block];
    for (std::int64_t i = 0; i < rows; ++i) {
      delta[i] = dot(gradients.rows.dy[first + i], output + (first + i) * head.value_dim, head.value_dim);
      gradients.gate_gradient += delta[i];
    }
    draw_bits(head, first, rows, block.bits);
    const std::int64_t keys = head.visible(first + rows - 1);
    for (std::int64_t begin = 0; begin < keys; begin += key_block)
      backward_block(head, first, rows, begin, std::min(begin + key_block, keys), log_sums, delta, gradients,
                     ds, block);
  }
}

template void forward_long(Arena&, const Head<float>&, float*, Rows<float>);
template void backward_long(Arena&, const Head<float>&, const float*, HeadGradients<float>&);
template void forward_long(Arena&, const Head<double>&, double*, Rows<double>);
template void backward_long(Arena&, const Head<double>&, const double*, HeadGradients<double>&);

}  // namespace polyhead::ops::attention
