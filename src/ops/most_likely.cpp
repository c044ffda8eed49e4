#include "polyhead/ops/most_likely.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "polyhead/kernels/simd.h"
#include "polyhead/kernels/small_matmul.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

namespace simd = kernels::simd;

/// Words whose logits exist at a time, of a block of rows: they and the weights stay in the core's own caches.
constexpr std::int64_t words_at_once = 128;
/// Rows whose logits stand side by side, so that each has a lane of vectors.
template <class T>
constexpr std::int64_t block_rows = 2 * simd::lanes<T>;

template <class T>
constexpr T no_logit = -std::numeric_limits<T>::infinity();

template <class T>
struct Word {
  T logit = no_logit<T>;
  std::int32_t id = -1;
  friend bool operator<(const Word& a, const Word& b) {  // the better one first
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
};

/// What is known of a block of rows from the tiles of words seen so far.
template <class T>
struct RowBlock {
  using Vec = simd::Vec<T>;
  RowBlock(std::int64_t count, const T* features, std::span<Word<T>> room)
      : rows(count), x(features), words(room) {
    std::fill_n(max, block_rows<T>, no_logit<T>);
    std::fill_n(sum, block_rows<T>, T{0});
  }

  std::int64_t rows;         ///< at most block_rows
  const T* x;                ///< [d, width()]: their features, then zeros
  std::span<Word<T>> words;  ///< [rows, count]: the best, a heap with the worst on top
  T max[block_rows<T>], sum[block_rows<T>];

  std::int64_t width() const { return simd::round_up<T>(rows); }
  std::span<Word<T>> words_of(std::int64_t row) const {
    const std::size_t count = words.size() / static_cast<std::size_t>(rows);
    return words.subspan(static_cast<std::size_t>(row) * count, count);
  }

  /// Takes n words from `first` on, with logits z [n, width()] but for the bias.
  void add(T* z, const T* bias, std::int64_t n, std::int64_t first, std::int32_t excluded) {
    for (std::int64_t lane = 0; lane < width(); lane += simd::lanes<T>) {
      Vec largest = simd::broadcast(no_logit<T>);
      for (std::int64_t j = 0; j < n; ++j) {
        Vec logits = simd::load(z + j * width() + lane);
        if (bias) simd::store(z + j * width() + lane, logits += bias[first + j]);
        largest = simd::max<T>(logits, largest);
      }
      add_exponentials(z + lane, n, lane, largest);
      T maxima[simd::lanes<T>];
      simd::store(maxima, largest);
      for (std::int64_t row = lane; row < std::min(rows, lane + simd::lanes<T>); ++row)
        if (maxima[row - lane] > words_of(row).front().logit) collect(z + row, n, row, first, excluded);
    }
  }

  /// Writes the words found of a row, as Words has them.
  void finish(std::int64_t row, T* log_probabilities, std::int32_t* ids) {
    const std::span<Word<T>> best = words_of(row);
    std::sort_heap(best.begin(), best.end());
    const T log_sum = max[row] + std::log(sum[row]);
    for (std::size_t i = 0; i < best.size(); ++i) {
      const T value = best[i].id >= 0 || std::isnan(log_sum) ? best[i].logit - log_sum : no_logit<T>;
      log_probabilities[i] = value;
      ids[i] = value > no_logit<T> ? best[i].id : -1;
    }
  }

 private:
  /// Brings the sums of a softmax up to date, lane by lane (Milakov and Gimelshein 2018, arXiv:1805.02867).
  void add_exponentials(const T* z, std::int64_t n, std::int64_t lane, const Vec& largest) {
    const Vec before = simd::load(max + lane), now = simd::max<T>(largest, before);
    const Vec shift = now == no_logit<T> ? Vec{} : now;
    Vec sums[2] = {simd::load(sum + lane) * simd::exp(before - shift), {}};
    for (std::int64_t j = 0; j < n; ++j) sums[j % 2] += simd::exp(simd::load(z + j * width()) - shift);
    simd::store(max + lane, now);
    simd::store(sum + lane, sums[0] + sums[1]);
  }

  void collect(const T* z, std::int64_t n, std::int64_t row, std::int64_t first,
               std::int32_t excluded) const {
    const std::span<Word<T>> best = words_of(row);
    for (std::int64_t j = 0; j < n; ++j) {
      const Word<T> word{z[j * width()], static_cast<std::int32_t>(first + j)};
      // Of two equal ones the later has the larger id.
      if (!(word.logit > best.front().logit) || word.id == excluded) continue;
      std::pop_heap(best.begin(), best.end());
      best.back() = word;
      std::push_heap(best.begin(), best.end());
    }
  }
};

/// The logits are multiplied as W xᵀ, a vector of rows at a time: weights are read where they stand, and only the few
/// features are laid out anew.
template <class T>
void find_words(const MostLikely& op, Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& bias,
                const MostLikely::Words& words) {
  const ArenaScope scope(exec.scratch);
  const std::int64_t n = x.rows(), d = x.cols(), vocabulary = weight.rows();
  const std::int64_t count = (n + block_rows<T> - 1) / block_rows<T>;
  auto* blocks = exec.scratch.allocate<RowBlock<T>>(static_cast<std::size_t>(count));
  for (std::int64_t b = 0; b < count; ++b) {
    const std::int64_t first = b * block_rows<T>, rows = std::min(block_rows<T>, n - first);
    auto* features = exec.scratch.allocate<T>(static_cast<std::size_t>(d * simd::round_up<T>(rows)));
    const auto room = static_cast<std::size_t>(rows * op.count);
    const std::span best(exec.scratch.allocate<Word<T>>(room), room);
    std::uninitialized_value_construct(best.begin(), best.end());
    const RowBlock<T>& block = *std::construct_at(blocks + b, rows, features, best);
    kernels::transpose<T>(rows, d, x.as<T>() + first * d, d, features, block.width());
  }
  T* tile = exec.scratch.allocate<T>(static_cast<std::size_t>(words_at_once * block_rows<T>));
  for (std::int64_t first = 0; first < vocabulary; first += words_at_once)
    for (RowBlock<T>& block : std::span(blocks, static_cast<std::size_t>(count))) {
      const std::int64_t width = std::min(words_at_once, vocabulary - first);
      kernels::small_matmul<T>(width, block.width(), d, {weight.as<T>() + first * d, d}, block.x,
                               block.width(), tile, block.width(), false);
      block.add(tile, bias ? bias.as<T>() : nullptr, width, first, op.excluded);
    }
  for (std::int64_t r = 0; r < n; ++r)
    blocks[r / block_rows<T>].finish(r % block_rows<T>, words.log_probabilities.as<T>() + r * op.count,
                                     words.ids.as<std::int32_t>() + r * op.count);
}

}  // namespace

MostLikely::Words MostLikely::operator()(Exec& exec, const Tensor& x, const Tensor& weight,
                                         const Tensor& bias) const {
  require(count >= 1, "most_likely: ", count, " words of a row, expected at least 1");
  require(x.shape.rank() == 2 && weight.shape.rank() == 2 && x.cols() == weight.cols(), "most_likely: x ",
          x.shape, " and weight ", weight.shape, ", expected [N, d] and [V, d]");
  require(!bias || bias.shape == Shape{weight.shape[0]}, "most_likely: bias ", bias.shape, ", expected [",
          weight.shape[0], "]");
  const Words words{exec.activations.tensor({x.rows(), count}, x.dtype),
                    exec.activations.tensor({x.rows(), count}, DType::i32)};
  dispatch(x.dtype, [&]<class T>() { find_words<T>(*this, exec, x, weight, bias, words); });
  return words;
}

}  // namespace polyhead::ops
