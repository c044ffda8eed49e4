#include "polyhead/ops/attention_overlap.h"

#include <algorithm>
#include <cmath>

#include "attention_head.h"
#include "polyhead/kernels/small_matmul.h"

namespace polyhead::ops {
namespace {

using namespace attention;
namespace simd = kernels::simd;

constexpr std::int64_t query_block = 32;

/// Some queries of a sentence, and the keys that the last of them sees.
template <class T>
struct Block {
  Segment queries, keys;
  std::int64_t ld;  ///< keys rounded up to whole vectors
  T* weights;       ///< [h, queries, ld], zero where a query may not look
  T* sum;           ///< [queries, ld]: over heads

  std::int64_t size() const { return queries.length * ld; }
};

template <class T>
Head<T> head_of(const AttentionOverlap& op, const Tensor& q, const Tensor& k, const Block<T>& block,
                std::int64_t a) {
  const std::int64_t width = q.cols(), dim = width / op.heads;
  Head<T> head;
  head.queries = block.queries.length;
  head.keys = block.keys.length;
  head.key_dim = dim;
  head.q = {q.as<T>() + block.queries.begin * width + a * dim, width};
  head.k = {k.as<T>() + block.keys.begin * width + a * dim, width};
  head.factor = static_cast<T>(1 / std::sqrt(static_cast<double>(dim)));
  head.causal = op.causal;
  return head;
}

/// Fills a block's weights and their sum.
template <class T>
void compute_weights(const AttentionOverlap& op, Arena& scratch, const Tensor& q, const Tensor& k,
                     const Block<T>& block, T* transposed) {
  std::fill_n(block.sum, block.size(), T{0});
  for (std::int64_t a = 0; a < op.heads; ++a) {
    const Head<T> head = head_of(op, q, k, block, a);
    const bool few = head.queries < queries_worth_a_transpose;
    if (!few) kernels::transpose(head.keys, head.key_dim, head.k.data, head.k.stride, transposed, block.ld);
    T* weights = block.weights + a * block.size();
    forward_short<T>(scratch, head, few ? nullptr : transposed, weights, {});
#pragma omp simd
    for (std::int64_t i = 0; i < block.size(); ++i) block.sum[i] += weights[i];
  }
}

/// Calls body(block) for all queries, in order.
template <class T, class Body>
void for_each_block(const AttentionOverlap& op, Arena& scratch, const Tensor& q, const Tensor& k,
                    const Body& body) {
  const ArenaScope scope(scratch);
  const std::int64_t most = simd::round_up<T>(longest(op.key_segments));
  const auto room = [&](std::int64_t rows) {
    return scratch.allocate<T>(static_cast<std::size_t>(rows * most));
  };
  T *weights = room(op.heads * query_block), *sum = room(query_block),
    *transposed = room(q.cols() / op.heads);
  for (std::int64_t s = 0; s < op.query_segments.count(); ++s) {
    const Segment &queries = op.query_segments[s], &keys = op.key_segments[s];
    for (std::int64_t first = 0; first < queries.length; first += query_block) {
      const std::int64_t end = std::min<std::int64_t>(first + query_block, queries.length);
      const std::int64_t seen =
          op.causal ? std::clamp<std::int64_t>(end + keys.length - queries.length, 0, keys.length)
                    : keys.length;
      const Block<T> block{
          {queries.begin + static_cast<std::int32_t>(first), static_cast<std::int32_t>(end - first)},
          {keys.begin, static_cast<std::int32_t>(seen)},
          simd::round_up<T>(seen),
          weights,
          sum};
      compute_weights(op, scratch, q, k, block, transposed);
      body(block);
    }
  }
}

/// The weights of one head of a block become the gradient of its products q·k: factor·W ⊙ (s − W·s).
template <class T>
void to_gradient(const Block<T>& block, T* weights, T factor) {
  for (std::int64_t i = 0; i < block.queries.length; ++i) {
    T* row = weights + i * block.ld;
    const T *sum = block.sum + i * block.ld, mean = dot(row, sum, block.ld);
#pragma omp simd
    for (std::int64_t j = 0; j < block.ld; ++j) row[j] *= factor * (sum[j] - mean);
  }
}

template <class T>
void add_gradients(const AttentionOverlap& op, const Block<T>& block, const Tensor& q, const Tensor& k,
                   T factor, Grad dq, Grad dk) {
  for (std::int64_t a = 0; a < op.heads; ++a) {
    const Head<T> head = head_of(op, q, k, block, a);
    T* ds = block.weights + a * block.size();
    to_gradient(block, ds, factor * head.factor);
    const std::int64_t width = q.cols(), column = a * head.key_dim;
    if (dq)
      kernels::small_matmul<T>(head.queries, head.key_dim, head.keys, {ds, block.ld}, head.k.data,
                               head.k.stride, dq.as<T>() + block.queries.begin * width + column, width, true);
    if (dk)
      kernels::small_matmul<T>(head.keys, head.key_dim, head.queries, {ds, 1, block.ld}, head.q.data,
                               head.q.stride, dk.as<T>() + block.keys.begin * width + column, width, true);
  }
}

}  // namespace

Shape AttentionOverlap::shape(const Tensor& q, const Tensor& k) const {
  require(heads > 0 && q.shape.rank() == 2 && q.cols() > 0 && q.cols() % heads == 0, "attention overlap: q ",
          q.shape, ", expected a matrix with columns for ", heads, " heads");
  require(k.shape.rank() == 2 && k.cols() == q.cols(), "attention overlap: k ", k.shape, ", expected ",
          q.cols(), " columns, as q has");
  require(k.dtype == q.dtype, "attention overlap: k of ", name(k.dtype), " beside q of ", name(q.dtype),
          ", expected one type");
  check_segments(query_segments, key_segments, q.shape[0], k.shape[0]);
  return {1};
}

AttentionOverlap::Saved AttentionOverlap::forward(Exec& exec, const Tensor& q, const Tensor& k,
                                                  const Tensor& y) const {
  dispatch(q.dtype, [&]<class T>() {
    double total = 0;
    for_each_block<T>(*this, exec.scratch, q, k, [&](const Block<T>& block) {
      for (std::int64_t i = 0; i < block.queries.length; ++i) {
        const T* sum = block.sum + i * block.ld;
        total += static_cast<double>(dot(sum, sum, block.ld));
      }
    });
    *y.as<T>() = static_cast<T>(total / static_cast<double>(heads * heads));
  });
  return {};
}

void AttentionOverlap::backward(Exec& exec, const Saved&, const Tensor& dy, const Tensor& q, const Tensor& k,
                                Grad dq, Grad dk) const {
  if (!dq && !dk) return;
  dispatch(q.dtype, [&]<class T>() {
    const T factor = 2 * *dy.as<T>() / static_cast<T>(heads * heads);
    for_each_block<T>(*this, exec.scratch, q, k,
                      [&](const Block<T>& block) { add_gradients(*this, block, q, k, factor, dq, dk); });
  });
}

}  // namespace polyhead::ops
