#include <algorithm>
#include <cmath>

#include "polyhead/core/rng.h"
#include "search.h"
#include "top_k.h"

namespace polyhead::decode {
namespace {

class Sampling final : public Search {
 public:
  explicit Sampling(const SearchTask& task) : task_(task), key_(RngKey{task.config.seed}.fold("sampling")) {
    for (const std::int32_t id : task.source) key_ = key_.fold(static_cast<std::uint64_t>(id));
    for (std::int32_t i = 0; i < task.config.nbest; ++i) {
      live_.push_back({task.first_slot + i, bos_id});
      draws_.emplace_back();
    }
  }

  bool observe(std::size_t row, const Continuations& next) override {
    const Tensor& log_probabilities = next.log_probabilities;
    const std::span<const ScoredId> best = top_k_(log_probabilities, 1);
    if (best.empty()) return false;
    largest_ = best.front().value;
    const auto draw = static_cast<std::size_t>(live_[row].slot - task_.first_slot);
    Hypothesis& hypothesis = draws_[draw];
    RandomStream random(key_.fold(draw).fold(hypothesis.ids.size()));
    const ScoredId drawn = pick(candidates(log_probabilities), random.uniform());
    live_[row].id = drawn.id;
    hypothesis.ids.push_back(drawn.id);
    hypothesis.log_probability += drawn.value;
    hypothesis.finished = drawn.id == eos_id;
    return true;
  }

  void advance(nn::DecoderState&) override {
    std::erase_if(live_, [&](const LiveRow& row) {
      const Hypothesis& h = draws_[static_cast<std::size_t>(row.slot - task_.first_slot)];
      return h.finished || h.ids.size() == static_cast<std::size_t>(task_.limit);
    });
  }

  std::vector<Hypothesis> hypotheses() const override {
    std::vector<Hypothesis> result = draws_;
    for (Hypothesis& h : result)
      h.score = h.log_probability / task_.config.penalty(static_cast<std::int64_t>(h.ids.size()));
    std::stable_sort(result.begin(), result.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    return result;
  }

 private:
  /// p^(1/temperature) up to a factor: 1 for the most probable id.
  double weight(double log_probability) const {
    return std::exp((log_probability - largest_) / task_.config.temperature);
  }
  double weight(std::span<const ScoredId> ids) const {
    double sum = 0;
    for (const ScoredId& x : ids) sum += weight(x.value);
    return sum;
  }

  /// All ids above −∞, in the order of ids.
  std::span<const ScoredId> all(const Tensor& row) {
    all_.clear();
    dispatch(row.dtype, [&]<class T>() {
      const auto values = row.span<T>();
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isinf(values[i])) all_.push_back({values[i], static_cast<std::int32_t>(i)});
    });
    return all_;
  }

  /// What may be drawn; at least the most probable id.
  std::span<const ScoredId> candidates(const Tensor& row) {
    const auto size = static_cast<std::size_t>(row.cols());
    const bool restricted = task_.config.top_k > 0;
    const std::size_t most = restricted ? std::min(static_cast<std::size_t>(task_.config.top_k), size) : size;
    if (task_.config.top_p >= 1) return restricted ? top_k_(row, most) : all(row);
    const double enough = task_.config.top_p * weight(restricted ? top_k_(row, most) : all(row));
    // The nucleus is mostly small, and sorting the whole vocabulary slow.
    for (std::size_t k = std::min<std::size_t>(64, most);; k = std::min(4 * k, most)) {
      const std::span<const ScoredId> best = top_k_(row, k);
      double sum = 0;
      for (std::size_t i = 0; i < best.size(); ++i)
        if ((sum += weight(best[i].value)) >= enough) return best.first(i + 1);
      if (k == most) return best;
    }
  }

  /// `uniform` in [0, 1).
  ScoredId pick(std::span<const ScoredId> ids, double uniform) const {
    double left = uniform * weight(ids);
    for (const ScoredId& x : ids)
      if ((left -= weight(x.value)) < 0) return x;
    // Rounding has used up the sum.
    return *std::max_element(ids.begin(), ids.end(),
                             [](const ScoredId& a, const ScoredId& b) { return a.value < b.value; });
  }

  SearchTask task_;
  RngKey key_;
  double largest_ = 0;
  TopK top_k_;
  std::vector<ScoredId> all_;
  std::vector<Hypothesis> draws_;
};

}  // namespace

std::unique_ptr<Search> make_sampling(const SearchTask& task) { return std::make_unique<Sampling>(task); }

}  // namespace polyhead::decode
