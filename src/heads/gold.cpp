#include "polyhead/heads/gold.h"

#include <algorithm>
#include <cstdlib>

#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

using Kind = nn::AttentionKind;

struct Placement {
  Relation relation;
  Kind kind;
  FirstPosition first;
};
constexpr Placement placements[] = {
    {Relation::head, Kind::encoder, {0, 0}},
    {Relation::dependents, Kind::encoder, {0, 0}},
    {Relation::input_head, Kind::decoder, {1, 1}},
    {Relation::input_dependents, Kind::decoder, {1, 1}},
    {Relation::predicted_head, Kind::decoder, {0, 1}},
    {Relation::predicted_dependents, Kind::decoder, {0, 1}},
    {Relation::predicted_alignment, Kind::cross, {0, 0}},
    {Relation::input_alignment, Kind::cross, {1, 0}},
};
const Placement& placement(Relation relation) { return placements[static_cast<std::size_t>(relation)]; }

/// The token with the largest weight of a row: of all keys but the one that is bos or eos.
int largest(const AttentionMap& map, std::int64_t query, std::int64_t first_key) {
  const auto tokens =
      map.row(query).subspan(static_cast<std::size_t>(first_key), static_cast<std::size_t>(map.keys() - 1));
  return static_cast<int>(std::max_element(tokens.begin(), tokens.end()) - tokens.begin());
}

std::vector<Edge> alignment_edges(const data::Pair& pair) {
  std::vector<Edge> edges;
  for (const data::Link& link : pair.alignment) edges.push_back({link.target, link.source, ""});
  return edges;
}

std::vector<Edge> tree_edges(const data::Dependencies& tree, bool to_head, bool earlier) {
  std::vector<Edge> edges;
  for (int token = 0; token < static_cast<int>(tree.heads.size()); ++token) {
    const int head = tree.heads[static_cast<std::size_t>(token)];
    if (head < 0) continue;
    const std::string_view label = tree.labels[static_cast<std::size_t>(token)];
    const Edge edge = to_head ? Edge{token, head, label} : Edge{head, token, label};
    if (!earlier || edge.key < edge.query) edges.push_back(edge);
  }
  return edges;
}

/// The tokens that have edges: of sorted edges, those whose query is not that of the edge before.
std::int64_t count_queries(std::span<const Edge> edges) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) count += i == 0 || edges[i].query != edges[i - 1].query;
  return count;
}

/// Calls take(label, its edges), which stay sorted.
template <class Take>
void each_label(std::span<const Edge> edges, const Take& take) {
  std::map<std::string_view, std::vector<Edge>> by_label;
  for (const Edge& edge : edges)
    if (!edge.label.empty()) by_label[edge.label].push_back(edge);
  for (const auto& [label, of_label] : by_label) take(label, std::span<const Edge>(of_label));
}

}  // namespace

std::span<const Relation> all_relations() {
  static const auto relations = [] {
    std::array<Relation, std::size(placements)> all{};
    std::transform(std::begin(placements), std::end(placements), all.begin(),
                   [](const Placement& p) { return p.relation; });
    return all;
  }();
  return relations;
}

Kind kind_of(Relation relation) { return placement(relation).kind; }

FirstPosition first_position(Relation relation) { return placement(relation).first; }

std::vector<Edge> gold_edges(Relation relation, const data::Pair& pair) {
  std::vector<Edge> edges;
  switch (relation) {
    case Relation::head:
    case Relation::dependents:
      edges = tree_edges(pair.source_tree, relation == Relation::head, false);
      break;
    case Relation::input_head:
    case Relation::predicted_head:
      edges = tree_edges(pair.target_tree, true, true);
      break;
    case Relation::input_dependents:
    case Relation::predicted_dependents:
      edges = tree_edges(pair.target_tree, false, true);
      break;
    case Relation::predicted_alignment:
    case Relation::input_alignment:
      edges = alignment_edges(pair);
      break;
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.query != b.query ? a.query < b.query : a.key < b.key;
  });
  return edges;
}

void EdgeAgreement::add(const AttentionMap& map, std::span<const Edge> edges) {
  const FirstPosition at = first_position(relation_);
  for (const Edge& edge : edges) mass_ += map(edge.query + at.query, edge.key + at.key);
  tokens_ += count_queries(edges);
  each_label(edges, [&](std::string_view label, std::span<const Edge> of_label) {
    Label& counts = labels_[label];
    counts.tokens += count_queries(of_label);
    for (const Edge& edge : of_label) counts.hits += largest(map, edge.query + at.query, at.key) == edge.key;
  });
}

void EdgeAgreement::merge(const EdgeAgreement& other) {
  mass_ += other.mass_;
  tokens_ += other.tokens_;
  for (const auto& [label, counts] : other.labels_) {
    labels_[label].tokens += counts.tokens;
    labels_[label].hits += counts.hits;
  }
}

void OffsetAgreement::add(std::span<const Edge> edges) {
  const auto count = [](Counts& counts, std::span<const Edge> counted) {
    counts.tokens += count_queries(counted);
    for (const Edge& edge : counted) ++counts.edges[edge.key - edge.query];
  };
  count(all_, edges);
  each_label(edges, [&](std::string_view label, std::span<const Edge> of_label) {
    count(labels_[label], of_label);
  });
}

namespace {

/// The better of two, by `sign` times the score.
OffsetScore better(const OffsetScore& a, const OffsetScore& b, int sign) {
  if (a.score != b.score) return (a.score - b.score) * sign > 0 ? a : b;
  if (std::abs(a.offset) != std::abs(b.offset)) return std::abs(a.offset) < std::abs(b.offset) ? a : b;
  return a.offset < b.offset ? a : b;
}

}  // namespace

OffsetScore OffsetAgreement::best(const Counts& counts) {
  OffsetScore best;
  for (const auto& [offset, edges] : counts.edges)
    best = better(best, {offset, static_cast<double>(edges) / static_cast<double>(counts.tokens)}, 1);
  return best;
}

void AlignmentAgreement::add(std::span<const int> sources, std::int64_t source_tokens,
                             std::span<const data::Link> gold) {
  for (const int source : sources) links += source >= 0 && source < source_tokens;
  for (const data::Link& link : gold) {
    require(link.target >= 0 && static_cast<std::size_t>(link.target) < sources.size(),
            "alignment: link to token ", link.target, " of ", sources.size(), " target tokens");
    const bool hit = sources[static_cast<std::size_t>(link.target)] == link.source;
    possible_hits += hit;
    sure_hits += hit && link.sure;
    sure += link.sure;
  }
}

void AlignmentAgreement::merge(const AlignmentAgreement& other) {
  sure_hits += other.sure_hits;
  possible_hits += other.possible_hits;
  links += other.links;
  sure += other.sure;
}

double AlignmentAgreement::error_rate() const {
  return 1 - static_cast<double>(sure_hits + possible_hits) / static_cast<double>(links + sure);
}

std::vector<int> alignment_of(const AttentionMap& map, Relation relation) {
  const FirstPosition at = first_position(relation);
  std::vector<int> sources;
  for (std::int64_t token = 0; token + 1 < map.queries(); ++token)
    sources.push_back(largest(map, token + at.query, at.key));
  return sources;
}

OffsetScore best_alignment_offset(std::span<const data::Pair> pairs) {
  int source = 0, target = 0;
  for (const data::Pair& pair : pairs) {
    source = std::max(source, static_cast<int>(pair.source.size()));
    target = std::max(target, static_cast<int>(pair.target.size()));
  }
  OffsetScore best{0, 1};
  for (int offset = 1 - target; offset < source; ++offset) {
    AlignmentAgreement agreement;
    for (const data::Pair& pair : pairs) {
      std::vector<int> sources(pair.target.size());
      for (std::size_t t = 0; t < sources.size(); ++t) sources[t] = static_cast<int>(t) + offset;
      agreement.add(sources, static_cast<std::int64_t>(pair.source.size()), pair.alignment);
    }
    best = better(best, {offset, agreement.error_rate()}, -1);
  }
  return best;
}

}  // namespace polyhead::heads
