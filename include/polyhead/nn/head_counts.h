#pragma once

#include <array>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "polyhead/config/constraint.h"
#include "polyhead/core/error.h"
#include "polyhead/nn/attention/site.h"

namespace polyhead::nn {

/// How many heads the attentions of a model have: one number, or numbers of their own for every kind and layer, which
/// may be 0 (what pruning leaves).
class HeadCounts {
 public:
  /// Of the encoder's layers, of the decoder's self-attention and of its cross-attention, as AttentionKind counts.
  using Lists = std::array<std::vector<int>, attention_kinds.size()>;

  HeadCounts(int heads) : everywhere_(heads) {}
  HeadCounts(Lists lists) : everywhere_(0), lists_(std::move(lists)) {}

  /// The number that all attentions have. Throws Error where each has its own.
  operator int() const {
    require(!lists_, "model.heads: ", *this, ", expected an integer here");
    return everywhere_;
  }
  /// Throws Error when lists have no such layer.
  int at(const AttentionSite& site) const {
    if (!lists_) return everywhere_;
    const std::vector<int>& of_kind = (*lists_)[static_cast<std::size_t>(site.kind)];
    const auto layer = static_cast<std::size_t>(site.layer);
    require(layer < of_kind.size(), "model.heads: ", name(site.kind), " has ", of_kind.size(),
            " numbers, none for layer ", layer);
    return of_kind[layer];
  }
  const std::optional<Lists>& lists() const { return lists_; }

  friend bool operator==(const HeadCounts&, const HeadCounts&) = default;
  friend bool operator==(const HeadCounts& a, int b) { return a == HeadCounts(b); }
  friend std::ostream& operator<<(std::ostream& out, const HeadCounts& heads);

 private:
  int everywhere_;
  std::optional<Lists> lists_;
};

}  // namespace polyhead::nn

/// An integer, or {encoder: [4, 0], decoder: [4, 2], cross: [4, 4]}.
template <>
struct polyhead::config::Codec<polyhead::nn::HeadCounts> {
  static std::string type() { return "an integer, or {encoder: [...], decoder: [...], cross: [...]}"; }
  static nn::HeadCounts read(const Node& node);
  static std::string text(const nn::HeadCounts& heads);
  static bool satisfies(const nn::HeadCounts& heads, const Constraint& constraint) {
    return heads.lists() || config::satisfies(int{heads}, constraint);
  }
};
