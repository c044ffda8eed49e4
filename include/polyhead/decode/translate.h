#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "polyhead/decode/config.h"
#include "polyhead/nn/attention/hook.h"

namespace polyhead {
class Profile;
}

namespace polyhead::nn {
class Transformer;
}

namespace polyhead::decode {

/// Ids that decoding gives a meaning to, as every vocabulary has them.
inline constexpr std::int32_t bos_id = 1, eos_id = 2;

/// The ids of one sentence.
using TokenIds = std::span<const std::int32_t>;

struct Hypothesis {
  std::vector<std::int32_t> ids;  ///< ends with eos when `finished`
  double log_probability = 0;     ///< natural logarithm, summed over ids
  double score = 0;               ///< log_probability divided by the length penalty
  bool finished = false;          ///< false: cut at the length limit

  friend bool operator==(const Hypothesis&, const Hypothesis&) = default;
};

/// Told how many more sentences are done; never by two threads at once.
using Progress = std::function<void(std::int64_t sentences)>;

/// Whose the queries of an attention are: the number in the input of each of their segments' sentence, and where in that
/// sentence a segment's first row stands.
struct QueryRows {
  std::span<const std::int64_t> sentences;
  std::int64_t position = 0;
};
/// Asked at every attention, as nn::AttentionHook is, by several threads at once.
using AttentionHook = std::function<nn::AttentionInputs(const nn::AttentionCall&, const QueryRows&)>;

/// Translations of each source (ids with eos at the end), the best score first, in the order of the sources.
///
/// Beam search: at each step the best 2·beam_size continuations are looked at; those among the first
/// beam_size that end with eos are finished, and the first beam_size of the others live on. The search of a
/// sentence ends when beam_size hypotheses have finished, when no live one could still enter the nbest
/// finished ones (its log-probability can only fall, and no length penalty exceeds the limit's), or at the
/// length limit; what is unfinished then is returned only where nothing has finished. beam_size 1 is greedy
/// search.
///
/// Sampling: nbest independent draws from p^(1/temperature), first cut to the top_k most probable ids, then
/// to the fewest that have top_p of what is left (Holtzman et al. 2020, arXiv:1904.09751). The
/// log-probability is the model's own. Draws are a function of (seed, the source's ids, number of the draw,
/// step): equal lines get equal samples, wherever they stand.
///
/// bos is never generated. Neither the order of the sources, nor batch_tokens, nor `threads` changes a bit of
/// the result. A source without ids other than eos gives one finished hypothesis without ids.
/// `attention`, where there is one, is asked at every attention: a step's queries are a row a hypothesis.
/// `profile` counts time by op, summed over threads, as forward passes; "search" is the choice among the continuations of a
/// sentence's hypotheses (or their draws) and the moves in the cache.
/// Throws DataError when a source is longer than the model's max_length, NumbersError when
/// log-probabilities are not finite.
std::vector<std::vector<Hypothesis>> translate(const nn::Transformer& model,
                                               std::span<const TokenIds> sources,
                                               const DecodingConfig& config, int threads,
                                               const Progress& progress = {}, Profile* profile = nullptr,
                                               const AttentionHook& attention = {});

/// Bytes that translate() will take at its peak: the arenas of its threads, each with the batch that takes the most, which is
/// encoded and decoded for one token, and the hypotheses. What else it takes, the process then has.
std::int64_t expected_memory(const nn::Transformer& model, std::span<const TokenIds> sources,
                             const DecodingConfig& config, int threads);

}  // namespace polyhead::decode
