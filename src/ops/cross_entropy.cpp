#include "polyhead/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "operand.h"
#include "polyhead/kernels/gemm.h"
#include "polyhead/kernels/vector_math.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

using kernels::Transpose;

/// Tokens whose logits are formed together. The weights and their gradient are read once a block, so larger
/// blocks move less; smaller ones stay nearer to the core.
constexpr std::int64_t block_tokens = 128;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

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
  T max = -std::numeric_limits<T>::infinity(), sum = 0;
  if (bias) {  // NOLINT(bugprone-branch-clone): the check does not see into OpenMP loops
#pragma omp simd reduction(max : max) reduction(+ : sum)
    for (std::int64_t j = 0; j < n; ++j) {
      z[j] += bias[j];
      max = z[j] > max ? z[j] : max;
      sum += z[j];
    }
  } else {
#pragma omp simd reduction(max : max) reduction(+ : sum)
    for (std::int64_t j = 0; j < n; ++j) {
      max = z[j] > max ? z[j] : max;
      sum += z[j];
    }
  }
  return {max, sum};
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

/// The settings and results of one pass over all tokens.
template <class T>
struct Pass {
  const ProjectedCrossEntropy& op;
  std::int64_t vocabulary;
  const T* bias;    // or null
  T* dbias;         // or null
  double loss = 0;  // of the tokens so far

  /// Adds the loss of one token, from its logits z = W x, which ∂z overwrites when gradients are wanted.
  void token(std::int64_t n, T* z) {
    const std::int32_t target = op.targets.as<std::int32_t>()[n];
    const double smoothing = op.label_smoothing;
    const auto [max, row_sum] = add_bias(z, bias, vocabulary);
    if (op.predictions)
      op.predictions.as<std::int32_t>()[n] = static_cast<std::int32_t>(first_equal(z, vocabulary, max));
    const double target_logit = static_cast<double>(z[target]);
    const std::span<T> row(z, static_cast<std::size_t>(vocabulary));
    const T sum = kernels::exp_sum<T>(row, max, row);
    const double log_sum = static_cast<double>(max) + std::log(static_cast<double>(sum));
    if (op.token_loss) op.token_loss.as<T>()[n] = static_cast<T>(log_sum - target_logit);
    loss += (1 - smoothing) * (log_sum - target_logit);
    if (smoothing > 0)
      loss += smoothing * (log_sum - static_cast<double>(row_sum) / static_cast<double>(vocabulary));
    if (op.gradients) gradient(z, target, T{1} / sum);
  }

  void gradient(T* z, std::int32_t target, T scale) const {
    const T uniform = static_cast<T>(op.label_smoothing / static_cast<double>(vocabulary));
    const T certain = static_cast<T>(1 - op.label_smoothing);
    if (dbias) {
#pragma omp simd
      for (std::int64_t j = 0; j < vocabulary; ++j) {
        z[j] = z[j] * scale - uniform;
        dbias[j] += z[j];
      }
      dbias[target] -= certain;
    } else {
#pragma omp simd
      for (std::int64_t j = 0; j < vocabulary; ++j) z[j] = z[j] * scale - uniform;
    }
    z[target] -= certain;
  }
};

template <class T>
double run(const ProjectedCrossEntropy& op, Exec& exec, const Tensor& x, const Tensor& weight,
           const Tensor& bias, const ProjectedCrossEntropy::Saved& saved) {
  const std::int64_t n = x.rows(), d = x.cols(), v = weight.rows();
  const std::int64_t block = std::min(n, block_tokens);
  // Every row aligned alike.
  const std::int64_t stride = round_up(v, 64 / static_cast<std::int64_t>(sizeof(T)));
  const ArenaScope scope(exec.scratch);
  T* logits = exec.scratch.tensor({block, stride}, x.dtype).template as<T>();
  Pass<T> pass{op, v, bias ? bias.as<T>() : nullptr, saved.dbias ? saved.dbias.as<T>() : nullptr};
  const auto blocks = [&]<class In>(const In* rows, const In* weights, In* gradients) {
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t count = std::min(block, n - begin);
      const In* r = rows + begin * d;
      kernels::gemm(exec.scratch, Transpose::no, Transpose::yes, count, v, d, r, d, weights, d, logits,
                    stride, false);
      for (std::int64_t i = 0; i < count; ++i) {
        T* z = logits + i * stride;
        pass.token(begin + i, z);
        if constexpr (std::is_same_v<In, BFloat16>)
          if (op.gradients)
            kernels::to_bf16({z, static_cast<std::size_t>(v)},
                             {gradients + i * stride, static_cast<std::size_t>(v)});
      }
      if (!op.gradients) continue;
      const In* g = gradients;
      kernels::gemm(exec.scratch, Transpose::no, Transpose::no, count, d, v, g, stride, weights, d,
                    saved.dx.as<T>() + begin * d, d, false);
      kernels::gemm(exec.scratch, Transpose::yes, Transpose::no, v, d, count, g, stride, r, d,
                    saved.dweight.as<T>(), d, true);
    }
  };
  if constexpr (std::is_same_v<T, float>)
    if (exec.half) {
      const Tensor gradients = exec.scratch.tensor({op.gradients ? block : 0, stride}, DType::bf16);
      blocks(operand(exec, x).as<BFloat16>(), operand(exec, weight).as<BFloat16>(), gradients.as<BFloat16>());
      return pass.loss;
    }
  blocks(x.as<T>(), weight.as<T>(), logits);
  return pass.loss;
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
    saved.dx = exec.activations.tensor(x.shape, x.dtype);
    saved.dweight = exec.activations.zeros(weight.shape, x.dtype);
    if (bias) saved.dbias = exec.activations.zeros(bias.shape, x.dtype);
  }
  dispatch(x.dtype,
           [&]<class T>() { *y.as<T>() = static_cast<T>(run<T>(*this, exec, x, weight, bias, saved)); });
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
