#include <algorithm>

#include "search.h"

namespace polyhead::decode {
namespace {

class BeamSearch final : public Search {
 public:
  explicit BeamSearch(const SearchTask& task)
      : task_(task), beam_size_(static_cast<std::size_t>(task.config.beam_size)) {
    for (std::int32_t i = task.config.beam_size - 1; i > 0; --i) free_slots_.push_back(task.first_slot + i);
    live_.push_back({task.first_slot, bos_id});
    beams_.push_back({-1, 0});
  }

  bool observe(std::size_t row, const Continuations& next) override {
    const Tensor& values = next.best.log_probabilities;
    const std::span<const std::int32_t> best = next.best.ids.span<std::int32_t>();
    dispatch(values.dtype, [&]<class T>() {
      for (std::size_t i = 0; i < best.size() && best[i] >= 0; ++i)
        candidates_.push_back(
            {beams_[row].log_probability + static_cast<double>(values.as<T>()[i]), best[i], row});
    });
    return best.front() >= 0;
  }

  void advance(nn::DecoderState& state) override {
    ++length_;
    choose();
    const bool at_limit = length_ == task_.limit;
    if (at_limit && finished_.empty())
      for (const Candidate& c : chosen_) finished_.push_back(close(c, false));
    if (at_limit || done()) {
      live_.clear();
      return;
    }
    extend(state);
  }

  std::vector<Hypothesis> hypotheses() const override {
    std::vector<Hypothesis> result = finished_;
    std::stable_sort(result.begin(), result.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    result.resize(std::min(result.size(), static_cast<std::size_t>(task_.config.nbest)));
    return result;
  }

 private:
  /// A token of the tree of all hypotheses; parent −1: the first.
  struct Node {
    std::int32_t id, parent;
  };
  /// What live_[i] stands for.
  struct Beam {
    std::int32_t node;
    double log_probability;
  };
  struct Candidate {
    double log_probability;
    std::int32_t id;
    std::size_t parent;  ///< in live_
  };

  /// Finishes the candidates that end, and leaves in chosen_ those that live on.
  void choose() {
    const std::size_t looked_at = std::min(2 * beam_size_, candidates_.size());
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(looked_at),
                      candidates_.end(), [](const Candidate& a, const Candidate& b) {
                        if (a.log_probability != b.log_probability)
                          return a.log_probability > b.log_probability;
                        return a.id != b.id ? a.id < b.id : a.parent < b.parent;
                      });
    chosen_.clear();
    for (std::size_t rank = 0; rank < looked_at; ++rank) {
      const Candidate& c = candidates_[rank];
      if (c.id == eos_id) {
        if (rank < beam_size_) finished_.push_back(close(c, true));
      } else if (chosen_.size() < beam_size_) {
        chosen_.push_back(c);
      }
    }
    candidates_.clear();
  }

  Hypothesis close(const Candidate& c, bool finished) const {
    Hypothesis result{{c.id}, c.log_probability, c.log_probability / task_.config.penalty(length_), finished};
    for (std::int32_t n = beams_[c.parent].node; n >= 0; n = nodes_[static_cast<std::size_t>(n)].parent)
      result.ids.push_back(nodes_[static_cast<std::size_t>(n)].id);
    std::reverse(result.ids.begin(), result.ids.end());
    return result;
  }

  bool done() const {
    if (chosen_.empty() || finished_.size() >= beam_size_) return true;
    const double best_possible = chosen_.front().log_probability / task_.config.penalty(task_.limit);
    const auto better = std::count_if(finished_.begin(), finished_.end(),
                                      [&](const Hypothesis& h) { return h.score >= best_possible; });
    return better >= task_.config.nbest;
  }

  /// Makes the chosen candidates the live hypotheses. The first child of each keeps its slot; the others are
  /// copied into slots of hypotheses without children.
  void extend(nn::DecoderState& state) {
    kept_.assign(live_.size(), false);
    for (const Candidate& c : chosen_) kept_[c.parent] = true;
    for (std::size_t i = 0; i < live_.size(); ++i)
      if (!kept_[i]) free_slots_.push_back(live_[i].slot);
    next_live_.clear();
    next_beams_.clear();
    for (const Candidate& c : chosen_) {
      std::int32_t slot = live_[c.parent].slot;
      if (!kept_[c.parent]) {
        state.copy_slot(slot, free_slots_.back());
        slot = free_slots_.back();
        free_slots_.pop_back();
      }
      kept_[c.parent] = false;
      next_live_.push_back({slot, c.id});
      next_beams_.push_back({static_cast<std::int32_t>(nodes_.size()), c.log_probability});
      nodes_.push_back({c.id, beams_[c.parent].node});
    }
    live_.swap(next_live_);
    beams_.swap(next_beams_);
  }

  SearchTask task_;
  std::size_t beam_size_;
  std::int32_t length_ = 0;
  std::vector<Node> nodes_;
  std::vector<Beam> beams_, next_beams_;
  std::vector<LiveRow> next_live_;
  std::vector<Candidate> candidates_, chosen_;
  std::vector<Hypothesis> finished_;
  std::vector<std::int32_t> free_slots_;
  std::vector<bool> kept_;
};

}  // namespace

std::unique_ptr<Search> make_beam_search(const SearchTask& task) {
  return std::make_unique<BeamSearch>(task);
}

}  // namespace polyhead::decode
