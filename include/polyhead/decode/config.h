#pragma once

#include <cstdint>

#include "polyhead/config/codec.h"
#include "polyhead/config/constraint.h"

namespace polyhead::config {
class Problems;
}

namespace polyhead::decode {

enum class Method { beam, sampling };
enum class LengthPenalty { none, wu, length };

inline config::EnumNames<Method> enum_names(Method) {
  return {{Method::beam, "beam"}, {Method::sampling, "sampling"}};
}
inline config::EnumNames<LengthPenalty> enum_names(LengthPenalty) {
  return {{LengthPenalty::none, "none"}, {LengthPenalty::wu, "wu"}, {LengthPenalty::length, "length"}};
}

/// How translations are looked for: section `decoding`.
struct DecodingConfig {
  Method method = Method::beam;
  int beam_size = 5;
  LengthPenalty length_penalty_kind = LengthPenalty::wu;
  double length_penalty = 0.6;
  double max_length_ratio = 2;
  int max_length_extra = 50;
  int nbest = 1;
  double temperature = 1;
  int top_k = 0;
  double top_p = 1;
  std::uint64_t seed = 1;
  int batch_tokens = 4096;
  bool operator==(const DecodingConfig&) const = default;

  /// What a hypothesis of `length` tokens, end token counted, has its log-probability divided by:
  /// wu: ((5 + length)/6)^α, Wu et al. 2016, arXiv:1609.08144, equation 14;  length: length^α;  none: 1.
  double penalty(std::int64_t length) const;
  /// Most target tokens, end token counted, for a source of `source_length` tokens:
  /// max_length_ratio·source_length + max_length_extra, at least 1 and at most the model's `max_length`.
  std::int32_t target_limit(std::int64_t source_length, int max_length) const;

  template <class Visitor>
  void fields(Visitor& v) {
    using namespace config;
    v("method", method, "beam search, or sampling from the model's distribution");
    v("beam_size", beam_size, "hypotheses kept at each step of beam search; 1: greedy", between(1, 1024));
    v("length_penalty_kind", length_penalty_kind,
      "log-probabilities are divided by wu: ((5 + length)/6)^length_penalty, length: length^length_penalty");
    v("length_penalty", length_penalty, "exponent of the length penalty; 0: none", between(0, 10));
    v("max_length_ratio", max_length_ratio, "a translation ends at this times the source's tokens",
      between(0, 1000));
    v("max_length_extra", max_length_extra, "... plus this many tokens", between(0, 65536));
    v("nbest", nbest, "translations of each sentence: the best of the beam, or that many samples",
      between(1, 1024));
    v("temperature", temperature, "of sampling: log-probabilities are divided by it", above(0));
    v("top_k", top_k, "sample from that many most probable tokens only; 0: from all", at_least(0));
    v("top_p", top_p, "sample from the fewest most probable tokens that have this probability together",
      above(0), at_most(1));
    v("seed", seed, "of sampling");
    v("batch_tokens", batch_tokens, "source tokens times hypotheses that are decoded together",
      between(1, 1 << 24));
  }
  /// Beam search returns at most `beam_size` translations.
  void validate(config::Problems& problems) const;
};

}  // namespace polyhead::decode
