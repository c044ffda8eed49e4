#include "polyhead/ops/most_likely.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "logits.h"
#include "polyhead/kernels/gemm.h"
#include "polyhead/kernels/vector_math.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::ops {
namespace {

/// Rows and words whose logits exist at a time: they and the words' weights stay in the core's own cache.
constexpr std::int64_t rows_at_once = 512, words_at_once = 512;
/// Words of which only the largest logit is looked at first.
constexpr std::int64_t chunk = 32;

template <class T>
constexpr T no_logit = -std::numeric_limits<T>::infinity();

template <class T>
struct Word {
  T logit;
  std::int32_t id;
  friend bool operator<(const Word& a, const Word& b) {  // the better one first
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
};

/// What is known of a row from the tiles seen so far.
template <class T>
class BestWords {
 public:
  /// `room` words of it are for this row: more than `count`, so that they are sorted now and then only.
  BestWords(std::span<Word<T>> room, std::int64_t count)
      : room_(room), count_(static_cast<std::size_t>(count)) {}

  /// Takes the logits z of the words from `first` on, and overwrites that of the excluded one.
  void add(std::span<T> z, const T* bias, std::int32_t first, std::int32_t excluded) {
    T maxima[words_at_once / chunk] = {};
    const auto n = static_cast<std::int64_t>(z.size()), chunks = (n + chunk - 1) / chunk;
    for (std::int64_t c = 0; c < chunks; ++c)
      maxima[c] = add_bias(z.data() + c * chunk, bias ? bias + first + c * chunk : nullptr,
                           std::min(chunk, n - c * chunk))
                      .max;
    total_.raise(*std::max_element(maxima, maxima + chunks));
    total_.sum += kernels::exp_sum<T>(z, total_.max == no_logit<T> ? T{0} : total_.max);
    if (excluded >= first && excluded < first + n) {
      const std::int64_t j = excluded - first, begin = j / chunk * chunk;
      z[static_cast<std::size_t>(j)] = no_logit<T>;
      maxima[j / chunk] = kernels::max<T>(
          z.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(chunk, n - begin))));
    }
    collect(z, {maxima, static_cast<std::size_t>(chunks)}, first);
  }

  /// Writes the words found.
  void finish(T* log_probabilities, std::int32_t* ids) {
    const std::size_t found = std::min(count_, size_);
    std::partial_sort(room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(found),
                      room_.begin() + static_cast<std::ptrdiff_t>(size_));
    const T log_sum = total_.max + std::log(total_.sum), rest = std::isnan(log_sum) ? log_sum : no_logit<T>;
    for (std::size_t i = 0; i < count_; ++i) {
      const T value = i < found ? room_[i].logit - log_sum : rest;
      log_probabilities[i] = value;
      ids[i] = value > no_logit<T> ? room_[i].id : -1;
    }
  }

 private:
  void collect(std::span<const T> z, std::span<const T> maxima, std::int32_t first) {
    const T least = bar_ == no_logit<T> ? least_worth_a_look(maxima) : bar_;
    for (std::size_t c = 0; c < maxima.size(); ++c) {
      if (maxima[c] < least) continue;
      const std::size_t begin = c * chunk, end = std::min(begin + chunk, z.size());
      for (std::size_t j = begin; j < end; ++j)
        if (z[j] >= least && z[j] > bar_) push({z[j], first + static_cast<std::int32_t>(j)});
    }
    if (bar_ == no_logit<T> && size_ >= count_) drop_the_worst();
  }

  /// The count_-th largest of the chunks' maxima, as that is not above the count_-th largest logit.
  T least_worth_a_look(std::span<const T> maxima) const {
    if (count_ > maxima.size()) return no_logit<T>;
    T order[words_at_once / chunk] = {};
    const auto end = std::copy(maxima.begin(), maxima.end(), order);
    std::nth_element(order, order + count_ - 1, end, std::greater<>());
    return order[count_ - 1];
  }

  void push(Word<T> word) {
    if (size_ == room_.size()) drop_the_worst();
    room_[size_++] = word;
  }

  /// Leaves the best count_.
  void drop_the_worst() {
    const auto last = room_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
    std::nth_element(room_.begin(), last, room_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ = count_;
    bar_ = last->logit;  // of two equal ones the later has the larger id
  }

  std::span<Word<T>> room_;
  std::size_t count_, size_ = 0;
  T bar_ = no_logit<T>;  ///< what a word's logit must exceed
  RunningSum<T> total_;
};

template <class T>
void find_words(const MostLikely& op, Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& bias,
                const MostLikely::Words& words) {
  const ArenaScope scope(exec.scratch);
  const std::int64_t n = x.rows(), d = x.cols(), vocabulary = weight.rows();
  const std::int64_t most = std::min(n, rows_at_once), room = op.count + chunk;
  T* tile = exec.scratch.allocate<T>(static_cast<std::size_t>(most * words_at_once));
  auto* rooms = exec.scratch.allocate<Word<T>>(static_cast<std::size_t>(most * room));
  auto* rows = exec.scratch.allocate<BestWords<T>>(static_cast<std::size_t>(most));
  for (std::int64_t begin = 0; begin < n; begin += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, n - begin);
    for (std::int64_t i = 0; i < count; ++i)
      std::construct_at(rows + i, std::span(rooms + i * room, static_cast<std::size_t>(room)), op.count);
    for (std::int64_t first = 0; first < vocabulary; first += words_at_once) {
      const std::int64_t width = std::min(words_at_once, vocabulary - first);
      kernels::gemm(exec.scratch, kernels::Transpose::no, kernels::Transpose::yes, count, width, d,
                    static_cast<const T*>(x.as<T>()) + begin * d, d,
                    static_cast<const T*>(weight.as<T>()) + first * d, d, tile, width, false);
      for (std::int64_t i = 0; i < count; ++i)
        rows[i].add({tile + i * width, static_cast<std::size_t>(width)}, bias ? bias.as<T>() : nullptr,
                    static_cast<std::int32_t>(first), op.excluded);
    }
    for (std::int64_t i = 0; i < count; ++i)
      rows[i].finish(words.log_probabilities.as<T>() + (begin + i) * op.count,
                     words.ids.as<std::int32_t>() + (begin + i) * op.count);
  }
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
