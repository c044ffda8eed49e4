#include "polyhead/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "attention_head.h"
#include "polyhead/kernels/small_matmul.h"

namespace polyhead::ops {
namespace attention {

std::int64_t longest(const Segments& segments) {
  std::int64_t most = 0;
  for (const Segment& s : segments.spans) most = std::max<std::int64_t>(most, s.length);
  return most;
}

void check_segments(const Segments& queries, const Segments& keys, std::int64_t query_rows,
                    std::int64_t key_rows) {
  require(queries.count() == keys.count(), "attention: ", queries.count(), " sentences of queries and ",
          keys.count(), " of keys, expected as many");
  std::int64_t free = 0;
  for (std::int64_t s = 0; s < queries.count(); ++s) {
    const Segment &q = queries[s], &k = keys[s];
    require(q.begin >= free && q.length >= 0 && std::int64_t{q.begin} + q.length <= query_rows,
            "attention: queries of sentence ", s, " are rows ", q.begin, " to ",
            std::int64_t{q.begin} + q.length, ", expected within rows ", free, " to ", query_rows,
            ", in order");
    require(k.begin >= 0 && k.length >= 0 && std::int64_t{k.begin} + k.length <= key_rows,
            "attention: keys of sentence ", s, " are rows ", k.begin, " to ",
            std::int64_t{k.begin} + k.length, ", expected within rows 0 to ", key_rows);
    free = std::int64_t{q.begin} + q.length;
  }
}

}  // namespace attention

namespace {

using namespace attention;
namespace simd = kernels::simd;

/// Everything that stays the same over the sentences and heads of one call.
template <class T>
struct Call {
  const MultiHeadAttention& op;
  Exec& exec;
  const Tensor &q, &k, &v;
  const Tensor &gates, &replacement;
  std::int64_t key_dim = q.cols() / op.heads, value_dim = v.cols() / op.kv_heads;
  std::int64_t group = op.heads / op.kv_heads;
  T scale = static_cast<T>(op.scale == 0 ? 1 / std::sqrt(static_cast<double>(key_dim)) : op.scale);
  kernels::DropoutRate rate{exec.training ? op.dropout : 0};
  RngKey key = exec.key.fold(op.site);

  /// The columns of a head of rows begin … in a matrix of heads of `width` columns.
  template <class U>
  static Rows<U> head_rows(const Tensor& t, std::int64_t width, std::int64_t begin, std::int64_t head) {
    if (!t) return {};
    return {t.as<U>() + begin * t.cols() + head * width, t.cols()};
  }

  Head<T> head(std::int64_t sentence, std::int64_t a) const {
    const Segment &queries = op.query_segments[sentence], &keys = op.key_segments[sentence];
    Head<T> h;
    h.queries = queries.length;
    h.keys = keys.length;
    h.key_dim = key_dim;
    h.value_dim = value_dim;
    h.q = head_rows<const T>(q, key_dim, queries.begin, a);
    h.k = head_rows<const T>(k, key_dim, keys.begin, a / group);
    h.v = head_rows<const T>(v, value_dim, keys.begin, a / group);
    h.mask = head_rows<const T>(op.mask, 0, queries.begin, 0);
    h.factor = scale * (op.logit_scale ? op.logit_scale.as<T>()[a] : T{1});
    h.causal = op.causal;
    h.dropout = {key, static_cast<std::uint32_t>(op.query_segments.first + sentence),
                 static_cast<std::uint32_t>(a), rate.threshold, rate.scale};
    if (op.weights) {
      const std::int64_t row = op.weights.shape[2];
      h.weights = {op.weights.as<T>() + (queries.begin * op.heads + a) * row, op.heads * row};
    }
    return h;
  }

  T gate(std::int64_t sentence, std::int64_t a) const {
    return gates ? gates.as<T>()[gate_index(sentence, a)] : T{1};
  }
  std::int64_t gate_index(std::int64_t sentence, std::int64_t a) const {
    return (gates.rows() == 1 ? 0 : sentence) * op.heads + a;
  }
  /// The replacement of row i of a sentence of head a.
  Rows<const T> replacement_rows(std::int64_t begin, std::int64_t a) const {
    const bool shared = replacement && replacement.rows() == 1;
    Rows<const T> rows = head_rows<const T>(replacement, value_dim, shared ? 0 : begin, a);
    if (shared) rows.stride = 0;
    return rows;
  }

  /// Has a head's keys and values of a sentence on their way to the cache.
  void prefetch(std::int64_t sentence, std::int64_t a) const {
    const Head<T> h = head(sentence, a);
    for (std::int64_t j = 0; j < h.keys; ++j) {
      for (std::int64_t c = 0; c < key_dim; c += simd::lanes<T>) __builtin_prefetch(h.k[j] + c);
      for (std::int64_t c = 0; c < value_dim; c += simd::lanes<T>) __builtin_prefetch(h.v[j] + c);
    }
  }

  bool is_long(std::int64_t sentence) const { return op.key_segments[sentence].length > longest_kept; }
  std::int64_t kept_head(std::int64_t sentence) const {
    return kept_size<T>(op.query_segments[sentence].length, op.key_segments[sentence].length, value_dim);
  }
  std::int64_t kept_total() const {
    std::int64_t sum = 0;
    for (std::int64_t s = 0; s < op.query_segments.count(); ++s)
      sum += simd::round_up<T>(kept_head(s) * op.heads);
    return sum;
  }
  /// Calls body(sentence, head, place of what is kept of it), heads that share keys one after the other.
  template <class Body>
  void for_each_head(const Body& body) const {
    std::int64_t kept = 0;
    for (std::int64_t s = 0; s < op.query_segments.count(); ++s) {
      for (std::int64_t a = 0; a < op.heads; ++a) body(s, a, kept + a * kept_head(s));
      kept += simd::round_up<T>(kept_head(s) * op.heads);
    }
  }
  /// Room for the transposed keys or values of the longest sentence.
  T* transposed_room(std::int64_t columns) const {
    return exec.scratch.allocate<T>(static_cast<std::size_t>(
        columns * simd::round_up<T>(std::min(longest(op.key_segments), longest_kept))));
  }
};

/// y <- gate·y + (1 − gate)·replacement
template <class T>
void apply_gate(T gate, Rows<const T> replacement, Rows<T> y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    T* row = y[i];
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) row[c] *= gate;
    if (!replacement) continue;
    const T* other = replacement[i];
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) row[c] += (1 - gate) * other[c];
  }
}

/// Σ dy·replacement of a head's rows, each row lane by lane.
template <class T>
T dot_all(Rows<const T> dy, Rows<const T> replacement, std::int64_t rows, std::int64_t columns) {
  T total = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    total += dot(dy[i], replacement[i], columns);
  }
  return total;
}

template <class T>
void forward_all(const Call<T>& call, T* kept, const Tensor& y) {
  const MultiHeadAttention& op = call.op;
  const ArenaScope scope(call.exec.scratch);
  T* transposed = call.transposed_room(call.key_dim);
  call.for_each_head([&](std::int64_t s, std::int64_t a, std::int64_t place) {
    const Head<T> head = call.head(s, a);
    const Rows<T> out = call.template head_rows<T>(y, call.value_dim, op.query_segments[s].begin, a);
    if (call.is_long(s)) {
      forward_long(call.exec.scratch, head, kept + place, out);
    } else {
      const bool few = head.queries < queries_worth_a_transpose;
      // A step of decoding has too little to do with what it reads to hide the way from memory.
      if (few && s + 1 < op.query_segments.count()) call.prefetch(s + 1, a);
      if (!few && a % call.group == 0)
        kernels::transpose(head.keys, head.key_dim, head.k.data, head.k.stride, transposed,
                           simd::round_up<T>(head.keys));
      forward_short<T>(call.exec.scratch, head, few ? nullptr : transposed, kept + place, out);
    }
    if (call.gates)
      apply_gate(call.gate(s, a), call.replacement_rows(op.query_segments[s].begin, a), out, head.queries,
                 head.value_dim);
  });
}

struct Gradients {
  Grad dq, dk, dv, dgates, dreplacement;
};

template <class T>
void backward_all(const Call<T>& call, const T* kept, const Tensor& dy, const Gradients& g) {
  const MultiHeadAttention& op = call.op;
  const ArenaScope scope(call.exec.scratch);
  T* transposed = call.transposed_room(call.value_dim);
  call.for_each_head([&](std::int64_t s, std::int64_t a, std::int64_t place) {
    const Head<T> head = call.head(s, a);
    const std::int64_t begin = op.query_segments[s].begin, key_begin = op.key_segments[s].begin,
                       group = call.group, key_dim = call.key_dim, value_dim = call.value_dim;
    const Rows<const T> dy_rows = call.template head_rows<const T>(dy, value_dim, begin, a);
    HeadGradients<T> gradients{{dy_rows, call.template head_rows<T>(g.dq.tensor, key_dim, begin, a),
                                call.template head_rows<T>(g.dk.tensor, key_dim, key_begin, a / group),
                                call.template head_rows<T>(g.dv.tensor, value_dim, key_begin, a / group)},
                               call.gate(s, a)};
    if (call.is_long(s)) {
      backward_long(call.exec.scratch, head, kept + place, gradients);
    } else {
      if (a % group == 0)
        kernels::transpose(head.keys, head.value_dim, head.v.data, head.v.stride, transposed,
                           simd::round_up<T>(head.keys));
      backward_short<T>(call.exec.scratch, head, transposed, kept + place, gradients);
    }
    const Rows<const T> replacement = call.replacement_rows(begin, a);
    if (g.dgates)
      g.dgates.template as<T>()[call.gate_index(s, a)] +=
          gradients.gate_gradient -
          (replacement ? dot_all(dy_rows, replacement, head.queries, head.value_dim) : T{0});
    if (!g.dreplacement) return;
    const bool shared = call.replacement.rows() == 1;
    const Rows<T> sums = call.template head_rows<T>(g.dreplacement.tensor, value_dim, shared ? 0 : begin, a);
    for (std::int64_t i = 0; i < head.queries; ++i) {
      T* sum = sums[shared ? 0 : i];
#pragma omp simd
      for (std::int64_t c = 0; c < head.value_dim; ++c) sum[c] += (1 - gradients.gate) * dy_rows[i][c];
    }
  });
}

}  // namespace

Shape MultiHeadAttention::shape(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gates,
                                const Tensor& replacement) const {
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "attention: ", heads, " heads and ", kv_heads,
          " heads of keys, expected a positive number that divides the heads");
  require(q.shape.rank() == 2 && k.shape.rank() == 2 && v.shape.rank() == 2, "attention: q ", q.shape, ", k ",
          k.shape, " and v ", v.shape, ", expected matrices");
  require(q.cols() > 0 && q.cols() % heads == 0, "attention: q ", q.shape, ", expected columns for ", heads,
          " heads");
  const std::int64_t key_dim = q.cols() / heads;
  require(k.cols() == kv_heads * key_dim, "attention: k ", k.shape, ", expected ", kv_heads * key_dim,
          " columns: ", kv_heads, " heads of ", key_dim);
  require(v.cols() > 0 && v.cols() % kv_heads == 0, "attention: v ", v.shape, ", expected columns for ",
          kv_heads, " heads");
  const std::int64_t query_rows = q.shape[0], columns = v.cols() / kv_heads * heads,
                     longest_keys = longest(key_segments);
  require(v.shape[0] == k.shape[0], "attention: k ", k.shape, " and v ", v.shape, ", expected as many rows");
  check_segments(query_segments, key_segments, query_rows, k.shape[0]);
  require(dropout >= 0 && dropout < 1, "attention: dropout ", dropout, ", expected at least 0 and below 1");
  const std::int64_t sentences = query_segments.count();
  require(!gates || gates.shape == Shape{1, heads} || gates.shape == Shape{sentences, heads},
          "attention: gates ", gates.shape, ", expected [1, ", heads, "] or [", sentences, ", ", heads, "]");
  require(!replacement || replacement.shape == Shape{1, columns} ||
              replacement.shape == Shape{query_rows, columns},
          "attention: replacement ", replacement.shape, ", expected [1, ", columns, "] or [", query_rows,
          ", ", columns, "]");
  require(!mask || mask.shape == Shape{query_rows, longest_keys}, "attention: mask ", mask.shape,
          ", expected ", Shape{query_rows, longest_keys});
  require(!logit_scale || logit_scale.shape == Shape{heads}, "attention: logit_scale ", logit_scale.shape,
          ", expected ", Shape{heads});
  require(!weights || weights.shape == Shape{query_rows, heads, longest_keys}, "attention: weights ",
          weights.shape, ", expected ", Shape{query_rows, heads, longest_keys});
  for (const Tensor& t : {k, v, gates, replacement, mask, logit_scale, weights})
    require(!t || t.dtype == q.dtype, "attention: a tensor of ", name(t.dtype), " beside q of ",
            name(q.dtype), ", expected one type");
  return {query_rows, columns};
}

MultiHeadAttention::Saved MultiHeadAttention::forward(Exec& exec, const Tensor& q, const Tensor& k,
                                                      const Tensor& v, const Tensor& gates,
                                                      const Tensor& replacement, const Tensor& y) const {
  if (query_segments.rows() != q.shape[0]) fill_zero(y);
  if (weights) fill_zero(weights);
  return dispatch(q.dtype, [&]<class T>() {
    const Call<T> call{*this, exec, q, k, v, gates, replacement};
    const Saved saved{exec.activations.tensor({call.kept_total()}, q.dtype)};
    forward_all(call, saved.kept.as<T>(), y);
    return saved;
  });
}

void MultiHeadAttention::backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& q,
                                  const Tensor& k, const Tensor& v, const Tensor& gates,
                                  const Tensor& replacement, Grad dq, Grad dk, Grad dv, Grad dgates,
                                  Grad dreplacement) const {
  dispatch(q.dtype, [&]<class T>() {
    const Call<T> call{*this, exec, q, k, v, gates, replacement};
    backward_all<T>(call, saved.kept.as<T>(), dy, {dq, dk, dv, dgates, dreplacement});
  });
}

}  // namespace polyhead::ops
