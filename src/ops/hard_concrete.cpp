#include "polyhead/ops/hard_concrete.h"

#include <algorithm>
#include <cmath>

#include "polyhead/core/rng.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

Shape HardConcrete::shape(const Tensor& log_alpha) const {
  require(log_alpha.shape.rank() == 1, "hard concrete gates: log alpha ", log_alpha.shape,
          ", expected [heads]");
  return {1, log_alpha.shape[0]};
}

HardConcrete::Saved HardConcrete::forward(Exec& exec, const Tensor& log_alpha, const Tensor& y) const {
  const Saved saved{exec.activations.tensor(log_alpha.shape, y.dtype)};
  const std::uint64_t key = exec.key.fold(site).value;
  dispatch(y.dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < log_alpha.size(); ++i) {
      double x = static_cast<double>(log_alpha.as<T>()[i]);
      if (exec.training) {
        const double u = (philox({static_cast<std::uint32_t>(i), 0, 0, 0}, key)[0] + 0.5) * 0x1p-32;
        x = (std::log(u) - std::log1p(-u) + x) / beta;
      }
      const double s = sigmoid(x);
      saved.s.as<T>()[i] = static_cast<T>(s);
      y.as<T>()[i] = static_cast<T>(std::clamp(s * (zeta - gamma) + gamma, 0.0, 1.0));
    }
  });
  return saved;
}

void HardConcrete::backward(Exec& exec, const Saved& saved, const Tensor& dy, const Tensor& log_alpha,
                            Grad dlog_alpha) const {
  if (!dlog_alpha) return;
  const double slope = (zeta - gamma) / (exec.training ? beta : 1);
  dispatch(dy.dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < log_alpha.size(); ++i) {
      const double s = static_cast<double>(saved.s.as<T>()[i]), y = s * (zeta - gamma) + gamma;
      if (y > 0 && y < 1)
        dlog_alpha.as<T>()[i] += static_cast<T>(static_cast<double>(dy.as<T>()[i]) * slope * s * (1 - s));
    }
  });
}

double HardConcrete::open_probability(double log_alpha) {
  return sigmoid(log_alpha - beta * std::log(-gamma / zeta));
}

double HardConcrete::value(double log_alpha) {
  return std::clamp(sigmoid(log_alpha) * (zeta - gamma) + gamma, 0.0, 1.0);
}

}  // namespace polyhead::ops
