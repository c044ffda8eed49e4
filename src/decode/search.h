#pragma once

#include <memory>
#include <span>
#include <vector>

#include "polyhead/decode/translate.h"
#include "polyhead/nn/decoder.h"
#include "polyhead/ops/most_likely.h"

namespace polyhead::decode {

/// One sentence to be translated. Its hypotheses live in the slots of the decoder's state from `first_slot`.
struct SearchTask {
  const DecodingConfig& config;
  TokenIds source;
  std::int32_t limit;  ///< most target tokens
  std::int32_t first_slot;
};

/// A hypothesis that the decoder extends: `id` is its last, not yet in the slot.
struct LiveRow {
  std::int32_t slot, id;
};

/// What may follow a hypothesis.
struct Continuations {
  /// Of beam search: the 2·beam_size best, each [1, 2·beam_size].
  ops::MostLikely::Words best;
  /// Of sampling: of all words, [1, V].
  Tensor log_probabilities;
};

/// The search for the translations of one sentence, a step at a time.
class Search {
 public:
  virtual ~Search() = default;
  /// Empty when the search has ended.
  std::span<const LiveRow> live() const { return live_; }
  /// Receives what may follow live()[row]; called for every row of a step. Whether there is anything: false where all
  /// log-probabilities are −∞.
  virtual bool observe(std::size_t row, const Continuations& next) = 0;
  /// Takes the step, and moves hypotheses between slots.
  virtual void advance(nn::DecoderState& state) = 0;
  /// The result, the best score first, when the search has ended.
  virtual std::vector<Hypothesis> hypotheses() const = 0;

 protected:
  std::vector<LiveRow> live_;
};

std::unique_ptr<Search> make_beam_search(const SearchTask& task);
std::unique_ptr<Search> make_sampling(const SearchTask& task);

/// Slots that a search needs.
inline std::int32_t slots_per_sentence(const DecodingConfig& config) {
  return config.method == Method::beam ? config.beam_size : config.nbest;
}

}  // namespace polyhead::decode
