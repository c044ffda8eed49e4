#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/data/pair.h"
#include "polyhead/heads/attention_maps.h"

/// How well a head's attention agrees with what is known about the sentences. Tokens are counted without bos and eos:
/// of a sentence's n tokens, token t is position t among the encoder's positions (eos is position n), and among the
/// decoder's it is the input at position t + 1 (bos is at 0) and what position t predicts.
namespace polyhead::heads {

/// From which token attention should go where. The decoder's come twice: from the position that has a token as its
/// input (Chen et al. 2020, arXiv:2004.14837), and from the one that predicts it and has not seen it.
enum class Relation {
  head,                  ///< encoder: a source token to the token that it depends on
  dependents,            ///< encoder: a source token to those that depend on it
  input_head,            ///< decoder, as head where it comes earlier, from the token's own position
  input_dependents,      ///< decoder, as dependents, of those that come earlier
  predicted_head,        ///< decoder, as input_head, from the position that predicts the token
  predicted_dependents,  ///< decoder, as input_dependents, from that position
  predicted_alignment,  ///< cross: to the source tokens that a target token is linked with, surely or possibly, from
                        ///< the position that predicts it
  input_alignment,  ///< cross: the same, from the token's own position
};
inline constexpr std::array<std::string_view, 8> relation_names{
    "head",           "dependents",           "input_head",          "input_dependents",
    "predicted_head", "predicted_dependents", "predicted_alignment", "input_alignment"};
constexpr std::string_view name(Relation relation) {
  return relation_names[static_cast<std::size_t>(relation)];
}

std::span<const Relation> all_relations();
/// The attention that a relation is for.
nn::AttentionKind kind_of(Relation relation);

/// The positions of token 0 of a sentence among a relation's queries and among its keys.
struct FirstPosition {
  std::int64_t query = 0, key = 0;
};
FirstPosition first_position(Relation relation);

/// Attention should go from token `query` to token `key`; `label` is that of the dependency, or "".
struct Edge {
  int query = 0, key = 0;
  std::string_view label;
  friend bool operator==(const Edge&, const Edge&) = default;
};
/// By query, then key.
std::vector<Edge> gold_edges(Relation relation, const data::Pair& pair);

/// The best that attention of one fixed offset does: all weight of token t on token t + offset, none where there is no
/// such token. Of equally good offsets the one nearest to 0, the negative one first.
struct OffsetScore {
  int offset = 0;
  double score = 0;
};

/// Agreement of one head with the edges of one relation over many sentences. Over the tokens t that have edges,
///   mass  = mean of Σ_{k: (t, k) an edge} W[t, k]
///   share = part of them whose largest weight among tokens (bos and eos left out) is on such a k,
/// the latter for the edges of one label: Voita et al. 2019 (arXiv:1905.09418), section 5.2.2.
class EdgeAgreement {
 public:
  explicit EdgeAgreement(Relation relation) : relation_(relation) {}
  /// `edges` of the pair that `map` is of, as gold_edges() gives them.
  void add(const AttentionMap& map, std::span<const Edge> edges);
  void merge(const EdgeAgreement& other);

  struct Label {
    std::int64_t tokens = 0, hits = 0;
    double share() const { return static_cast<double>(hits) / static_cast<double>(tokens); }
  };
  std::int64_t tokens() const { return tokens_; }
  /// Of at least one token.
  double mass() const { return mass_ / static_cast<double>(tokens_); }
  const std::map<std::string_view, Label>& labels() const { return labels_; }

 private:
  Relation relation_;
  double mass_ = 0;
  std::int64_t tokens_ = 0;
  std::map<std::string_view, Label> labels_;
};

/// The same of the best fixed offset, whose mass is the part of tokens with an edge of that offset.
class OffsetAgreement {
 public:
  void add(std::span<const Edge> edges);
  /// Of at least one token.
  OffsetScore mass() const { return best(all_); }
  OffsetScore share(std::string_view label) const { return best(labels_.at(label)); }

 private:
  struct Counts {
    std::int64_t tokens = 0;
    std::map<int, std::int64_t> edges;  // by offset
  };
  static OffsetScore best(const Counts& counts);
  Counts all_;
  std::map<std::string_view, Counts> labels_;
};

/// Agreement of an alignment A with sure links S and possible links P ⊇ S (Och & Ney 2003, "A systematic comparison of
/// various statistical alignment models"):
///   AER = 1 − (|A ∩ S| + |A ∩ P|)/(|A| + |S|)
struct AlignmentAgreement {
  std::int64_t sure_hits = 0, possible_hits = 0, links = 0, sure = 0;
  /// `sources` has the source token of each target token, or one outside of the sentence where it has none.
  void add(std::span<const int> sources, std::int64_t source_tokens, std::span<const data::Link> gold);
  void merge(const AlignmentAgreement& other);
  /// Of at least one link of either kind.
  double error_rate() const;
};

/// A of a head: every target token is linked with the source token of its largest weight. Neither end token takes
/// part, as in Garg et al. 2019 (arXiv:1909.02074) and its published program. `relation` says from which position.
std::vector<int> alignment_of(const AttentionMap& map, Relation relation);

/// The fixed offset of the smallest AER over `pairs`.
OffsetScore best_alignment_offset(std::span<const data::Pair> pairs);

}  // namespace polyhead::heads
