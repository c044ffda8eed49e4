#include "polyhead/train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "polyhead/core/parallel.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::train {
namespace {

/// Elements that one thread works on at a time; also the unit of fixed-order sums.
constexpr std::int64_t block_size = 65536;

/// Calls body(begin, end) for each block of `size` elements.
template <class Body>
void for_blocks(int threads, std::int64_t size, const Body& body) {
  parallel_for(threads, (size + block_size - 1) / block_size, [&](std::int64_t block, int) {
    body(block * block_size, std::min(size, (block + 1) * block_size));
  });
}

/// The constants of one update.
template <class T>
struct Rule {
  T beta1, rest1, beta2, rest2;  // β₁, 1 − β₁, β₂, 1 − β₂
  T eps, learning_rate, gradient_scale;
  T mean_scale, squares_scale;  // 1/(1 − β₁ᵗ), 1/(1 − β₂ᵗ)

  /// `coupled` is λ in adam, `keep` is 1 − η·λ in adamw.
  void apply(T* p, const T* gradient, T* m, T* v, std::int64_t n, T coupled, T keep) const {
    const Rule r = *this;  // a copy, so that no store can alias it
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T g = gradient[i] * r.gradient_scale + coupled * p[i];
      m[i] = r.beta1 * m[i] + r.rest1 * g;
      v[i] = r.beta2 * v[i] + r.rest2 * g * g;
      p[i] =
          keep * p[i] - r.learning_rate * (m[i] * r.mean_scale) / (std::sqrt(v[i] * r.squares_scale) + r.eps);
    }
  }
};

void require_alike(const Tensor& a, const Tensor& b, const char* what) {
  require(a.shape == b.shape && a.dtype == b.dtype, what, ": slabs ", name(a.dtype), a.shape, " and ",
          name(b.dtype), b.shape, ", expected the same");
}

template <class T>
double sum_of_squares(const T* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace

Adam::Adam(const AdamConfig& config, std::span<const DecayRange> ranges) : config_(config) {
  std::int64_t end = 0;
  for (const DecayRange& range : ranges) {
    require(range.begin >= end && range.length >= 0, "decay range of ", range.length, " elements at ",
            range.begin, ", expected at ", end, " or later");
    end = range.begin + range.length;
    if (range.decay && config.weight_decay > 0) decayed_.push_back(range);
  }
}

void Adam::step(const AdamState& state, std::int64_t update, double learning_rate, double gradient_scale,
                int threads) const {
  require(update >= 1, "update ", update, " of Adam, expected at least 1");
  for (const Tensor& other : {state.gradients, state.mean, state.squares})
    require_alike(state.parameters, other, "Adam");
  const double decay = config_.weight_decay;
  const bool coupled = config_.optimizer == OptimizerKind::adam;
  dispatch(state.parameters.dtype, [&]<class T>() {
    const auto t = static_cast<double>(update);
    const Rule<T> rule{static_cast<T>(config_.beta1),
                       static_cast<T>(1 - config_.beta1),
                       static_cast<T>(config_.beta2),
                       static_cast<T>(1 - config_.beta2),
                       static_cast<T>(config_.eps),
                       static_cast<T>(learning_rate),
                       static_cast<T>(gradient_scale),
                       static_cast<T>(1 / (1 - std::pow(config_.beta1, t))),
                       static_cast<T>(1 / (1 - std::pow(config_.beta2, t)))};
    const T penalty = static_cast<T>(coupled ? decay : 0),
            keep = static_cast<T>(coupled ? 1 : 1 - learning_rate * decay);
    const auto apply = [&](std::int64_t begin, std::int64_t end, bool decayed) {
      rule.apply(state.parameters.as<T>() + begin, state.gradients.as<T>() + begin,
                 state.mean.as<T>() + begin, state.squares.as<T>() + begin, end - begin,
                 decayed ? penalty : T{0}, decayed ? keep : T{1});
    };
    for_blocks(threads, state.parameters.size(), [&](std::int64_t begin, std::int64_t end) {
      auto range = std::partition_point(decayed_.begin(), decayed_.end(),
                                        [&](const DecayRange& r) { return r.begin + r.length <= begin; });
      for (; range != decayed_.end() && range->begin < end; ++range) {
        const std::int64_t from = std::max(begin, range->begin),
                           to = std::min(end, range->begin + range->length);
        apply(begin, from, false);
        apply(from, to, true);
        begin = to;
      }
      apply(begin, end, false);
    });
  });
}

double global_norm(const Tensor& gradients, Arena& scratch, int threads) {
  const ArenaScope scope(scratch);
  const std::int64_t size = gradients.size();
  const Tensor partial = scratch.zeros({(size + block_size - 1) / block_size}, DType::f64);
  dispatch(gradients.dtype, [&]<class T>() {
    for_blocks(threads, size, [&](std::int64_t begin, std::int64_t end) {
      partial.as<double>()[begin / block_size] = sum_of_squares(gradients.as<T>() + begin, end - begin);
    });
  });
  double sum = 0;
  for (const double value : partial.span<double>()) sum += value;
  return std::sqrt(sum);
}

double clip_factor(double norm, double clip_norm) {
  return clip_norm > 0 ? std::min(1.0, clip_norm / (norm + 1e-6)) : 1.0;
}

std::int64_t first_non_finite(const Tensor& values) {
  return dispatch(values.dtype, [&]<class T>() -> std::int64_t {
    const auto all = values.span<T>();
    const auto found = std::find_if(all.begin(), all.end(), [](T x) { return !std::isfinite(x); });
    return found == all.end() ? -1 : found - all.begin();
  });
}

double average_decay(double decay, std::int64_t update) {
  const auto t = static_cast<double>(update);
  return std::min(decay, (1 + t) / (10 + t));
}

void update_average(const Tensor& average, const Tensor& parameters, double decay, int threads) {
  require_alike(average, parameters, "moving average");
  dispatch(average.dtype, [&]<class T>() {
    const T keep = static_cast<T>(decay), take = static_cast<T>(1 - decay);
    for_blocks(threads, average.size(), [&](std::int64_t begin, std::int64_t end) {
      T* a = average.as<T>();
      const T* p = parameters.as<T>();
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) a[i] = keep * a[i] + take * p[i];
    });
  });
}

}  // namespace polyhead::train
