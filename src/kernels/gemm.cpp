#include "polyhead/kernels/gemm.h"

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <type_traits>

#include "onednn.h"
#include "polyhead/kernels/bf16.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::kernels {
namespace {

#ifdef POLYHEAD_ONEDNN
template <class T>
constexpr bool through_onednn = std::is_same_v<T, float> || std::is_same_v<T, BFloat16>;
#else
template <class T>
constexpr bool through_onednn = false;
#endif

/// Outside a parallel region oneDNN and Eigen would take every core, and lay out their work for them.
class OneThread {
 public:
  OneThread() : outer_(omp_get_max_threads()) {
    if (outer_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (outer_ != 1) omp_set_num_threads(outer_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int outer_;
};

template <class In, class Out>
struct Product {
  bool a_transposed, b_transposed, accumulate;
  std::int64_t m, n, k;
  const In* a;
  std::int64_t lda;
  const In* b;
  std::int64_t ldb;
  Out* c;
  std::int64_t ldc;
};

template <class T>
void multiply_eigen(const Product<T, T>& p) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Input = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
  const Input a(p.a, p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, Eigen::OuterStride<>(p.lda));
  const Input b(p.b, p.b_transposed ? p.n : p.k, p.b_transposed ? p.k : p.n, Eigen::OuterStride<>(p.ldb));
  Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>> c(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (!p.accumulate) c.setZero();
  if (p.a_transposed && p.b_transposed)
    c.noalias() += a.transpose() * b.transpose();
  else if (p.a_transposed)
    c.noalias() += a.transpose() * b;
  else if (p.b_transposed)
    c.noalias() += a * b.transpose();
  else
    c.noalias() += a * b;
}

#ifdef POLYHEAD_ONEDNN
/// Packed batches bring a new number of rows at every step and a primitive costs far more to create than to run, so
/// blocks of rows take their extents from a small set.
constexpr std::int64_t block_extents[] = {1024, 896, 768, 640, 512, 480, 448, 416, 384, 352, 320, 288, 256,
                                          224,  192, 160, 128, 96,  64,  32,  16,  8,   4,   2,   1};
#endif

template <class In, class Out>
void multiply(Arena& scratch, const Product<In, Out>& p) {
#ifdef POLYHEAD_ONEDNN
  if constexpr (through_onednn<In>) {
    const onednn::Problem problem{p.m,
                                  p.n,
                                  p.k,
                                  p.lda,
                                  p.ldb,
                                  p.ldc,
                                  p.a_transposed,
                                  p.b_transposed,
                                  p.accumulate,
                                  std::is_same_v<In, BFloat16>};
    return onednn::multiply(scratch, problem, block_extents, p.a, p.b, p.c);
  }
#endif
  (void)scratch;
  if constexpr (std::is_same_v<In, Out>) multiply_eigen(p);
}

/// The extent of the next block of `left` rows (or of the sum over k), one of block_extents. A last block of fewer than
/// 32 is padded to a power of two, which is larger than `left`.
template <class T>
std::int64_t block_extent(std::int64_t left, std::int64_t largest) {
  if (left >= 512) return std::min(left / 128 * 128, largest);
  if (left >= 32) return left / 32 * 32;
  // Eigen takes other paths, with other bits, for small products.
  return through_onednn<T> ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(left))) : 32;
}

/// A copy of src [rows, cols] in the corner of a matrix [padded_rows, padded_cols] that is zero elsewhere.
template <class T>
T* padded(Arena& scratch, const T* src, std::int64_t ld, std::int64_t rows, std::int64_t cols,
          std::int64_t padded_rows, std::int64_t padded_cols) {
  const Tensor t = scratch.tensor({padded_rows, padded_cols}, dtype_of<T>());
  T* out = t.as<T>();
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(src + r * ld, cols, out + r * padded_cols);
    std::fill_n(out + r * padded_cols + cols, padded_cols - cols, T{});
  }
  std::fill_n(out + rows * padded_cols, (padded_rows - rows) * padded_cols, T{});
  return out;
}

template <class In, class Out>
void multiply_padded_rows(Arena& scratch, Product<In, Out> p, std::int64_t rows) {
  const ArenaScope scope(scratch);
  const Product<In, Out> whole = p;
  p.a = padded(scratch, whole.a, whole.lda, whole.m, whole.k, rows, whole.k);
  p.lda = whole.k;
  p.c = whole.accumulate ? padded(scratch, whole.c, whole.ldc, whole.m, whole.n, rows, whole.n)
                         : scratch.tensor({rows, whole.n}, dtype_of<Out>()).template as<Out>();
  p.ldc = whole.n;
  p.m = rows;
  multiply(scratch, p);
  for (std::int64_t r = 0; r < whole.m; ++r) std::copy_n(p.c + r * p.ldc, whole.n, whole.c + r * whole.ldc);
}

template <class In, class Out>
void multiply_padded_depth(Arena& scratch, Product<In, Out> p, std::int64_t depth) {
  const ArenaScope scope(scratch);
  p.a = padded(scratch, p.a, p.lda, p.k, p.m, depth, p.m);
  p.lda = p.m;
  p.b = p.b_transposed ? padded(scratch, p.b, p.ldb, p.n, p.k, p.n, depth)
                       : padded(scratch, p.b, p.ldb, p.k, p.n, depth, p.n);
  p.ldb = p.b_transposed ? depth : p.n;
  p.k = depth;
  multiply(scratch, p);
}

/// A is [m,k]: rows are independent, so blocks of rows.
template <class In, class Out>
void split_rows(Arena& scratch, Product<In, Out> p) {
  for (std::int64_t left = p.m; left > 0; left -= p.m) {
    const std::int64_t rows = block_extent<In>(left, 1024);
    p.m = std::min(rows, left);
    // oneDNN sums few rows in another order when they do not stand close together.
    const bool few_apart = rows < 32 && (p.lda != p.k || p.ldc != p.n);
    if (rows > left || few_apart)
      multiply_padded_rows(scratch, p, rows);
    else
      multiply(scratch, p);
    p.a += p.m * p.lda;
    p.c += p.m * p.ldc;
  }
}

/// A is [k,m], as in the gradient of a weight, where k counts tokens: blocks of the sum, each added to the
/// ones before.
template <class In, class Out>
void split_depth(Arena& scratch, Product<In, Out> p) {
  for (std::int64_t left = p.k; left > 0; left -= p.k) {
    const std::int64_t depth = block_extent<In>(left, 512);
    p.k = std::min(depth, left);
    if (depth > left)
      multiply_padded_depth(scratch, p, depth);
    else
      multiply(scratch, p);
    p.accumulate = true;
    p.a += p.k * p.lda;
    p.b += p.b_transposed ? p.k : p.k * p.ldb;
  }
}

}  // namespace

template <class In, class Out>
void gemm(Arena& scratch, Transpose a_transposed, Transpose b_transposed, std::int64_t m, std::int64_t n,
          std::int64_t k, const In* a, std::int64_t lda, const In* b, std::int64_t ldb, Out* c,
          std::int64_t ldc, bool accumulate) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t r = 0; r < m && !accumulate; ++r) std::fill_n(c + r * ldc, n, Out{0});
    return;
  }
  if constexpr (std::is_same_v<In, BFloat16>) require(has_bf16(), "this machine has no products of bf16");
  const OneThread one_thread;
  const Product<In, Out> p{a_transposed == Transpose::yes,
                           b_transposed == Transpose::yes,
                           accumulate,
                           m,
                           n,
                           k,
                           a,
                           lda,
                           b,
                           ldb,
                           c,
                           ldc};
  if (p.a_transposed)
    split_depth(scratch, p);
  else
    split_rows(scratch, p);
}

template void gemm(Arena&, Transpose, Transpose, std::int64_t, std::int64_t, std::int64_t, const float*,
                   std::int64_t, const float*, std::int64_t, float*, std::int64_t, bool);
template void gemm(Arena&, Transpose, Transpose, std::int64_t, std::int64_t, std::int64_t, const double*,
                   std::int64_t, const double*, std::int64_t, double*, std::int64_t, bool);
template void gemm(Arena&, Transpose, Transpose, std::int64_t, std::int64_t, std::int64_t, const BFloat16*,
                   std::int64_t, const BFloat16*, std::int64_t, float*, std::int64_t, bool);

void gemm(Arena& scratch, Transpose a_transposed, Transpose b_transposed, const Tensor& a, const Tensor& b,
          const Tensor& c, bool accumulate) {
  const bool ta = a_transposed == Transpose::yes, tb = b_transposed == Transpose::yes;
  const std::int64_t m = ta ? a.cols() : a.rows(), k = ta ? a.rows() : a.cols();
  const std::int64_t k_of_b = tb ? b.cols() : b.rows(), n = tb ? b.rows() : b.cols();
  require(k == k_of_b && c.rows() == m && c.cols() == n, "gemm: ", a.shape, ta ? " transposed" : "",
          " times ", b.shape, tb ? " transposed" : "", " into ", c.shape, ", which does not fit");
  const auto product = [&]<class In, class Out>(const In* first, Out* out) {
    gemm(scratch, a_transposed, b_transposed, m, n, k, first, a.cols(), static_cast<const In*>(b.as<In>()),
         b.cols(), out, c.cols(), accumulate);
  };
  if (a.dtype == DType::bf16) return product(static_cast<const BFloat16*>(a.as<BFloat16>()), c.as<float>());
  dispatch(c.dtype, [&]<class T>() { product(static_cast<const T*>(a.as<T>()), c.as<T>()); });
}

}  // namespace polyhead::kernels
