#include "polyhead/ops/dropout.h"

#include <algorithm>

#include "polyhead/kernels/random.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

/// The sixteen random bits of every feature, row by row, first row to last.
class RowBits {
 public:
  RowBits(Exec& exec, std::uint64_t site, const Segments& segments, std::int64_t features)
      : key_(exec.key.fold(site)),
        segments_(segments),
        bits_(exec.scratch.allocate<std::uint16_t>(static_cast<std::size_t>(features)),
              static_cast<std::size_t>(features)) {}

  /// Null for a row outside every segment. Rows must be asked for in order.
  const std::uint16_t* row(std::int64_t r) {
    while (sentence_ < segments_.count() && r >= segments_[sentence_].begin + segments_[sentence_].length)
      ++sentence_;
    if (sentence_ == segments_.count() || r < segments_[sentence_].begin) return nullptr;
    const std::int64_t position = r - segments_[sentence_].begin;
    kernels::random_bits(key_, static_cast<std::uint32_t>(segments_.first + sentence_),
                         static_cast<std::uint32_t>(position), 0, bits_);
    return bits_.data();
  }

 private:
  RngKey key_;
  Segments segments_;
  std::span<std::uint16_t> bits_;
  std::int64_t sentence_ = 0;
};

void require_segments(const char* op, const Segments& segments, std::int64_t rows) {
  std::int64_t end = 0;
  for (const Segment& s : segments.spans) {
    require(s.begin >= end && s.length >= 0 && s.begin + std::int64_t{s.length} <= rows, op,
            ": a segment of ", s.length, " rows from row ", s.begin,
            ", expected segments in order, apart, and within ", rows, " rows");
    end = s.begin + std::int64_t{s.length};
  }
}

/// y (+)= base + x ⊙ m/(1 − p), where base may be null. The mask multiplies, so that NaN and Inf stay
/// visible.
template <bool accumulate, class T>
void apply_mask(const T* base, const T* x, T* y, std::int64_t d, const std::uint16_t* bits,
                const kernels::DropoutRate& rate) {
  const T scale = static_cast<T>(rate.scale);
  const auto threshold = static_cast<std::uint16_t>(rate.threshold);
#pragma omp simd
  for (std::int64_t i = 0; i < d; ++i) {
    const T value = x[i] * (bits[i] >= threshold ? scale : T{0});
    if constexpr (accumulate)
      y[i] += value;
    else
      y[i] = base ? base[i] + value : value;
  }
}

template <class T>
void add(const T* x, T* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

/// df += dy ⊙ m/(1 − p)
void add_masked(Exec& exec, double p, std::uint64_t site, const Segments& segments, const Tensor& dy,
                Grad df) {
  const std::int64_t d = dy.cols();
  const kernels::DropoutRate rate(p);
  const ArenaScope scope(exec.scratch);
  dispatch(dy.dtype, [&]<class T>() {
    if (!exec.training || rate.threshold == 0) return add(dy.as<T>(), df.as<T>(), dy.size());
    RowBits bits(exec, site, segments, d);
    for (std::int64_t r = 0; r < dy.rows(); ++r) {
      const T* g = dy.as<T>() + r * d;
      if (const std::uint16_t* row = bits.row(r))
        apply_mask<true>(static_cast<const T*>(nullptr), g, df.as<T>() + r * d, d, row, rate);
      else
        add(g, df.as<T>() + r * d, d);
    }
  });
}

}  // namespace

Shape Dropout::shape(const Tensor& x) const {
  const kernels::DropoutRate rate(p);
  require_segments("dropout", segments, x.rows());
  return x.shape;
}

Dropout::Saved Dropout::forward(Exec& exec, const Tensor& x, const Tensor& y) const {
  const kernels::DropoutRate rate(p);
  const std::int64_t d = x.cols();
  const ArenaScope scope(exec.scratch);
  dispatch(x.dtype, [&]<class T>() {
    if (!exec.training || rate.threshold == 0) return copy(x, y);
    RowBits bits(exec, site, segments, d);
    for (std::int64_t r = 0; r < x.rows(); ++r) {
      const T* in = x.as<T>() + r * d;
      if (const std::uint16_t* row = bits.row(r))
        apply_mask<false>(static_cast<const T*>(nullptr), in, y.as<T>() + r * d, d, row, rate);
      else
        std::copy_n(in, d, y.as<T>() + r * d);
    }
  });
  return {};
}

void Dropout::backward(Exec& exec, const Saved&, const Tensor& dy, const Tensor&, Grad dx) const {
  if (dx) add_masked(exec, p, site, segments, dy, dx);
}

Shape ResidualDropout::shape(const Tensor& x, const Tensor& f) const {
  const kernels::DropoutRate rate(p);
  require(x.shape == f.shape, "residual_dropout: x ", x.shape, " and f ", f.shape,
          ", expected the same shape");
  require_segments("residual_dropout", segments, x.rows());
  return x.shape;
}

ResidualDropout::Saved ResidualDropout::forward(Exec& exec, const Tensor& x, const Tensor& f,
                                                const Tensor& y) const {
  const kernels::DropoutRate rate(p);
  const bool active = exec.training && rate.threshold > 0;
  const std::int64_t d = x.cols();
  const ArenaScope scope(exec.scratch);
  dispatch(x.dtype, [&]<class T>() {
    RowBits bits(exec, site, active ? segments : Segments{}, d);
    for (std::int64_t r = 0; r < x.rows(); ++r) {
      const T* base = x.as<T>() + r * d;
      const T* in = f.as<T>() + r * d;
      T* out = y.as<T>() + r * d;
      if (const std::uint16_t* row = bits.row(r)) {
        apply_mask<false>(base, in, out, d, row, rate);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < d; ++i) out[i] = base[i] + in[i];
      }
    }
  });
  return {};
}

void ResidualDropout::backward(Exec& exec, const Saved&, const Tensor& dy, const Tensor&, const Tensor&,
                               Grad dx, Grad df) const {
  if (dx) dispatch(dy.dtype, [&]<class T>() { add(dy.as<T>(), dx.as<T>(), dy.size()); });
  if (df) add_masked(exec, p, site, segments, dy, df);
}

}  // namespace polyhead::ops
