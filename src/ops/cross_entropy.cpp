#include "polyhead/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "operand.h"
#include "polyhead/kernels/gemm.h"
#include "polyhead/kernels/simd.h"
#include "polyhead/kernels/vector_math.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

using kernels::Transpose;
namespace simd = kernels::simd;

/// Tokens whose logits exist at a time, and words of the vocabulary whose logits for all of them are worked on together:
/// such a tile, its weights and their gradient stay in the core's own cache between the passes over them.
constexpr std::int64_t block_tokens = 512, tile_words = 512;
/// Rows of zeros make the last block a multiple of this, for which a matrix product has code of its own.
constexpr std::int64_t row_multiple = 32;

std::int64_t round_up(std::int64_t n) { return (n + row_multiple - 1) / row_multiple * row_multiple; }

/// The index of the first element equal to `value`, 0 when there is none (all NaN).
template <class T>
std::int64_t first_equal(const T* z, std::int64_t n, T value) {
  constexpr std::int64_t chunk = 256;
  for (std::int64_t begin = 0; begin < n; begin += chunk) {
    const std::int64_t end = std::min(n, begin + chunk);
    int found = 0;
#pragma omp simd reduction(| : found)
    for (std::int64_t j = begin; j < end; ++j) found |= z[j] == value;
    if (found) return std::find(z + begin, z + end, value) - z;
  }
  return 0;
}

template <class T>
struct RowStatistics {
  T max, sum;
};

/// z <- z + bias, and its statistics, in one pass; bias may be null.
template <class T>
RowStatistics<T> add_bias(T* z, const T* bias, std::int64_t n) {
  constexpr std::int64_t step = simd::lanes<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  simd::Vec<T> max[2] = {simd::broadcast(lowest), simd::broadcast(lowest)}, sum[2] = {};
  const auto count = [&](int side, std::int64_t j) __attribute__((always_inline)) {
    simd::Vec<T> x = simd::load(z + j);
    if (bias) simd::store(z + j, x += simd::load(bias + j));
    max[side] = simd::max<T>(x, max[side]);
    sum[side] += x;
  };
  std::int64_t j = 0;
  for (; j + 2 * step <= n; j += 2 * step) {
    count(0, j);
    count(1, j + step);
  }
  if (j + step <= n) {
    count(0, j);
    j += step;
  }
  if (j < n) {
    simd::Vec<T> x = simd::load_first(z + j, n - j, lowest);
    if (bias) simd::store_first(z + j, n - j, x += simd::load_first(bias + j, n - j, T{0}));
    max[1] = simd::max<T>(x, max[1]);
    sum[1] += simd::select_first<T>(n - j, x, simd::Vec<T>{});
  }
  return {simd::max<T>(simd::max<T>(max[0], max[1])), simd::sum<T>(sum[0] + sum[1])};
}

template <class T>
void axpy(T a, const T* x, T* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) y[j] += a * x[j];
}

void add_scaled(const Tensor& dy, const Tensor& saved, const Grad& grad) {
  if (!grad) return;
  dispatch(saved.dtype, [&]<class T>() { axpy(*dy.as<T>(), saved.as<T>(), grad.as<T>(), saved.size()); });
}

/// What is known of the logits z of one token from the tiles seen so far.
template <class T>
struct Row {
  T max = -std::numeric_limits<T>::infinity();
  T sum = 0;         // Σ exp(z − max)
  double total = 0;  // Σ z
  T target = 0;      // the logit of the target word
};

/// One block of tokens, tile by tile: first all logits with their statistics, then all gradients. The softmax is kept as
/// exp(z − m) with the maximum m of the tiles so far, which is put right when the last one is known (Milakov and
/// Gimelshein 2018, arXiv:1805.02867).
template <class T, class In>
struct Block {
  const ProjectedCrossEntropy& op;
  Exec& exec;
  const ProjectedCrossEntropy::Saved& saved;
  const In* weight;
  const T* bias;  // or null
  std::int64_t vocabulary, d;
  std::int64_t begin = 0, count = 0, padded = 0;  // tokens, and rows with those of zeros
  const In* x = nullptr;                          // [padded, d]
  T* tiles = nullptr;     // [tiles, padded, tile_words]; without gradients one tile at a time
  T* shifts = nullptr;    // [tiles, count]: what each row of a tile was shifted by
  In* rounded = nullptr;  // [padded, tile_words]: a tile of gradients as an operand, where In is not T
  Row<T>* rows = nullptr;

  std::int64_t tile_count() const { return (vocabulary + tile_words - 1) / tile_words; }
  T* tile(std::int64_t t) const { return tiles + (op.gradients ? t * padded * tile_words : 0); }
  std::int64_t width(std::int64_t t) const { return std::min(tile_words, vocabulary - t * tile_words); }
  bool contains(std::int64_t t, std::int32_t word) const {
    return word >= t * tile_words && word < t * tile_words + width(t);
  }
  std::int32_t target(std::int64_t i) const { return op.targets.as<std::int32_t>()[begin + i]; }

  double loss() {
    std::fill_n(rows, count, Row<T>{});
    for (std::int64_t t = 0; t < tile_count(); ++t) {
      kernels::gemm(exec.scratch, Transpose::no, Transpose::yes, padded, width(t), d, x, d,
                    weight + t * tile_words * d, d, tile(t), width(t), false);
      for (std::int64_t i = 0; i < count; ++i) add_logits(t, i);
    }
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += token_loss(i);
    return sum;
  }

  void add_logits(std::int64_t t, std::int64_t i) const {
    Row<T>& row = rows[i];
    const std::int64_t n = width(t);
    T* z = tile(t) + i * n;
    const auto [max, sum] = add_bias(z, bias ? bias + t * tile_words : nullptr, n);
    row.total += static_cast<double>(sum);
    if (contains(t, target(i))) row.target = z[target(i) - t * tile_words];
    const T before = row.max;
    if (max > before) {
      row.max = max;
      row.sum *= std::exp(before - max);
      if (op.predictions)
        op.predictions.as<std::int32_t>()[begin + i] =
            static_cast<std::int32_t>(t * tile_words + first_equal(z, n, max));
    }
    const std::span<T> all(z, static_cast<std::size_t>(n));
    row.sum += kernels::exp_sum<T>(all, row.max, all);
    shifts[t * count + i] = row.max;
  }

  double token_loss(std::int64_t i) const {
    const Row<T>& row = rows[i];
    const double log_sum = static_cast<double>(row.max) + std::log(static_cast<double>(row.sum));
    const double target = static_cast<double>(row.target);
    if (op.token_loss) op.token_loss.as<T>()[begin + i] = static_cast<T>(log_sum - target);
    const double smooth = log_sum - row.total / static_cast<double>(vocabulary);
    return (1 - op.label_smoothing) * (log_sum - target) +
           (op.label_smoothing > 0 ? op.label_smoothing * smooth : 0);
  }

  void gradients() const {
    for (std::int64_t t = 0; t < tile_count(); ++t) {
      const std::int64_t n = width(t), first = t * tile_words;
      for (std::int64_t i = 0; i < count; ++i) logit_gradient(t, i);
      if constexpr (!std::is_same_v<In, T>) std::fill_n(rounded + count * n, (padded - count) * n, In{});
      const In* g = operands(t);
      kernels::gemm(exec.scratch, Transpose::no, Transpose::no, padded, d, n, g, n, weight + first * d, d,
                    saved.dx.as<T>() + begin * d, d, t > 0);
      kernels::gemm(exec.scratch, Transpose::yes, Transpose::no, n, d, padded, g, n, x, d,
                    saved.dweight.as<T>() + first * d, d, true);
    }
  }

  /// ∂L/∂z of one token over tile t, in place of exp(z − shift).
  void logit_gradient(std::int64_t t, std::int64_t i) const {
    const std::int64_t n = width(t);
    T* z = tile(t) + i * n;
    T* db = saved.dbias ? saved.dbias.as<T>() + t * tile_words : nullptr;
    const T scale = std::exp(shifts[t * count + i] - rows[i].max) / rows[i].sum;
    const T uniform = static_cast<T>(op.label_smoothing / static_cast<double>(vocabulary));
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) z[j] = z[j] * scale - uniform;
    if (contains(t, target(i))) z[target(i) - t * tile_words] -= static_cast<T>(1 - op.label_smoothing);
    if (db) axpy(T{1}, z, db, n);
    if constexpr (!std::is_same_v<In, T>)
      kernels::to_bf16({z, static_cast<std::size_t>(n)}, {rounded + i * n, static_cast<std::size_t>(n)});
  }

  /// A tile of gradients as an operand of matrix products.
  const In* operands(std::int64_t t) const {
    if constexpr (std::is_same_v<In, T>)
      return tile(t);
    else
      return rounded;
  }
};

/// x as an operand, with rows of zeros below.
template <class In>
const In* padded_operand(Exec& exec, const Tensor& x) {
  const std::int64_t n = x.rows(), rows = round_up(n), d = x.cols();
  const Tensor padded = exec.scratch.tensor({rows, d}, dtype_of<In>());
  const Tensor inside = padded.slice_rows(0, n);
  if constexpr (std::is_same_v<In, BFloat16>)
    kernels::to_bf16(x.span<float>(), inside.span<BFloat16>());
  else
    copy(x, inside);
  if (rows > n) fill_zero(padded.slice_rows(n, rows - n));
  return padded.as<In>();
}

/// The loss over all tokens; with op.gradients also what `saved` holds.
template <class T, class In>
double run(const ProjectedCrossEntropy& op, Exec& exec, const Tensor& x, const Tensor& weight,
           const Tensor& bias, const ProjectedCrossEntropy::Saved& saved) {
  const ArenaScope scope(exec.scratch);
  const In* rows = padded_operand<In>(exec, x);
  Block<T, In> block{
      op,      exec, saved, operand(exec, weight).as<In>(), bias ? bias.as<T>() : nullptr, weight.rows(),
      x.cols()};
  const std::int64_t most = std::min(round_up(x.rows()), block_tokens);
  const auto room = [&]<class U>(std::int64_t n, U*) {
    return exec.scratch.allocate<U>(static_cast<std::size_t>(n));
  };
  block.tiles = room((op.gradients ? block.tile_count() : 1) * most * tile_words, block.tiles);
  block.shifts = room(block.tile_count() * most, block.shifts);
  if (!std::is_same_v<In, T> && op.gradients) block.rounded = room(most * tile_words, block.rounded);
  block.rows = room(most, block.rows);
  double loss = 0;
  for (block.begin = 0; block.begin < x.rows(); block.begin += block_tokens) {
    block.count = std::min(block_tokens, x.rows() - block.begin);
    block.padded = round_up(block.count);
    block.x = rows + block.begin * block.d;
    loss += block.loss();
    if (op.gradients) block.gradients();
  }
  return loss;
}

}  // namespace

Shape ProjectedCrossEntropy::shape(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
  require(
      x.shape.rank() == 2 && weight.shape.rank() == 2 && x.cols() == weight.cols() && weight.shape.size() > 0,
      "cross_entropy: x ", x.shape, " and weight ", weight.shape, ", expected [N, d] and [V, d]");
  const std::int64_t n = x.shape[0], v = weight.shape[0];
  require(!bias || bias.shape == Shape{v}, "cross_entropy: bias ", bias.shape, ", expected [", v, "]");
  require(targets.shape == Shape{n} && targets.dtype == DType::i32, "cross_entropy: targets ",
          name(targets.dtype), targets.shape, ", expected i32[", n, "]");
  require(!token_loss || (token_loss.shape == Shape{n} && token_loss.dtype == x.dtype),
          "cross_entropy: token_loss ", name(token_loss.dtype), token_loss.shape, ", expected ",
          name(x.dtype), "[", n, "]");
  require(!predictions || (predictions.shape == Shape{n} && predictions.dtype == DType::i32),
          "cross_entropy: predictions ", name(predictions.dtype), predictions.shape, ", expected i32[", n,
          "]");
  require(label_smoothing >= 0 && label_smoothing <= 1, "cross_entropy: label_smoothing ", label_smoothing,
          ", expected 0 to 1");
  return {1};
}

ProjectedCrossEntropy::Saved ProjectedCrossEntropy::forward(Exec& exec, const Tensor& x, const Tensor& weight,
                                                            const Tensor& bias, const Tensor& y) const {
  const std::int64_t n = x.rows(), v = weight.rows();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t target = targets.as<std::int32_t>()[i];
    require(target >= 0 && target < v, "cross_entropy: target ", target, " of token ", i, ", expected 0 to ",
            v - 1);
  }
  Saved saved;
  if (gradients) {
    saved.dx = exec.activations.tensor({round_up(n), x.cols()}, x.dtype).slice_rows(0, n);
    saved.dweight = exec.activations.zeros(weight.shape, x.dtype);
    if (bias) saved.dbias = exec.activations.zeros(bias.shape, x.dtype);
  }
  dispatch(x.dtype, [&]<class T>() {
    const double loss = exec.half && x.dtype == DType::f32
                            ? run<float, BFloat16>(*this, exec, x, weight, bias, saved)
                            : run<T, T>(*this, exec, x, weight, bias, saved);
    *y.as<T>() = static_cast<T>(loss);
  });
  return saved;
}

void ProjectedCrossEntropy::backward(Exec&, const Saved& saved, const Tensor& dy, const Tensor&,
                                     const Tensor&, const Tensor&, Grad dx, Grad dweight, Grad dbias) const {
  require(gradients, "cross_entropy: backward of an op that was made without gradients");
  add_scaled(dy, saved.dx, dx);
  add_scaled(dy, saved.dweight, dweight);
  add_scaled(dy, saved.dbias, dbias);
}

}  // namespace polyhead::ops
