#pragma once

#include <span>

/// Elementary functions over rows, for float and double. Vectorised; sums are taken lane by lane and then
/// over the lanes as a tree, so that a row's bits depend on its values alone: not on its address, nor on the
/// thread.
namespace polyhead::kernels {

/// y_i = exp(x_i), within 1.2 ulp, also where the result is subnormal;
/// −∞ gives 0, NaN stays NaN, too large gives ∞. y may be x.
template <class T>
void exp(std::span<const T> x, std::span<T> y);

/// The largest element, −∞ for none. NaN may be passed over: a sum of exponentials after it shows them.
template <class T>
T max(std::span<const T> x);

/// y_i = exp(x_i − shift); returns Σ y_i. y may be x.
template <class T>
T exp_sum(std::span<const T> x, T shift, std::span<T> y);

/// Σ exp(x_i − shift).
template <class T>
T exp_sum(std::span<const T> x, T shift);

/// log Σ exp(x_i), shifted by the maximum; −∞ when every x_i is −∞ or there is none.
template <class T>
T log_sum_exp(std::span<const T> x);

/// x_i <- exp(x_i)/Σ exp(x_j), in place; all zero when every x_i is −∞. Returns log Σ exp(x_j) as above.
template <class T>
T softmax_row(std::span<T> x);

}  // namespace polyhead::kernels
