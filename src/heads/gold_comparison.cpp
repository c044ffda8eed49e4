#include "polyhead/heads/gold_comparison.h"

#include <algorithm>
#include <cmath>

#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

bool has_gold(const data::Pair& pair) {
  const auto any = [](const data::Dependencies& tree) {
    return std::any_of(tree.heads.begin(), tree.heads.end(), [](int head) { return head >= 0; });
  };
  return !pair.alignment.empty() || any(pair.source_tree) || any(pair.target_tree);
}

std::vector<RelationBaseline> baselines(std::span<const data::Pair> pairs) {
  std::vector<RelationBaseline> result;
  for (const Relation relation : all_relations()) {
    RelationBaseline baseline{relation, {}, {}};
    bool any = false;
    for (const data::Pair& pair : pairs) {
      const std::vector<Edge> edges = gold_edges(relation, pair);
      baseline.edges.add(edges);
      any = any || !edges.empty();
    }
    if (!any) continue;
    if (kind_of(relation) == nn::AttentionKind::cross) baseline.error_rate = best_alignment_offset(pairs);
    result.push_back(std::move(baseline));
  }
  return result;
}

/// What AttentionMaps::gather adds up.
struct Agreements {
  std::span<const data::Pair> pairs;
  std::span<const RelationBaseline> relations;
  std::vector<std::vector<std::optional<RelationAgreement>>> of_heads;

  Agreements(std::span<const data::Pair> all, std::span<const RelationBaseline> compared,
             std::span<const Head> heads)
      : pairs(all), relations(compared), of_heads(heads.size()) {
    for (std::size_t h = 0; h < heads.size(); ++h)
      for (const RelationBaseline& baseline : relations) {
        of_heads[h].emplace_back();
        if (kind_of(baseline.relation) == heads[h].site.kind)
          of_heads[h].back() = RelationAgreement{EdgeAgreement(baseline.relation), {}};
      }
  }

  void add(std::int64_t index, std::span<const AttentionMap> maps) {
    const data::Pair& pair = pairs[static_cast<std::size_t>(index)];
    if (!has_gold(pair)) return;
    for (std::size_t r = 0; r < relations.size(); ++r) {
      const Relation relation = relations[r].relation;
      const std::vector<Edge> edges = gold_edges(relation, pair);
      for (std::size_t h = 0; h < maps.size(); ++h) {
        auto& agreement = of_heads[h][r];
        if (!agreement) continue;
        agreement->edges.add(maps[h], edges);
        if (relations[r].error_rate)
          agreement->alignment.add(alignment_of(maps[h], relation),
                                   static_cast<std::int64_t>(pair.source.size()), pair.alignment);
      }
    }
  }

  void merge(const Agreements& other) {
    for (std::size_t h = 0; h < of_heads.size(); ++h)
      for (std::size_t r = 0; r < relations.size(); ++r) {
        auto& agreement = of_heads[h][r];
        if (!agreement) continue;
        agreement->edges.merge(other.of_heads[h][r]->edges);
        agreement->alignment.merge(other.of_heads[h][r]->alignment);
      }
  }
};

}  // namespace

std::string gold_problem(std::span<const data::Pair> pairs, std::span<const decode::TokenPair> ids) {
  if (std::none_of(pairs.begin(), pairs.end(), has_gold))
    return "the pairs have no gold alignment or dependencies";
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (const auto& [pieces, tokens] : {std::pair{ids[i].source.size() - 1, &pairs[i].source},
                                         std::pair{ids[i].target.size() - 1, &pairs[i].target}})
      if (pieces != tokens->size())
        return concat("\"", data::text(*tokens), "\" is ", tokens->size(), " tokens and ", pieces,
                      " pieces, expected one piece a token (tokenizer.kind: word)");
  return "";
}

GoldComparison compare_with_gold(const nn::Transformer& model, std::span<const data::Pair> pairs,
                                 std::span<const decode::TokenPair> ids, int threads,
                                 const decode::Progress& progress) {
  const std::string problem = gold_problem(pairs, ids);
  require(problem.empty(), "comparison with gold annotations: ", problem);
  GoldComparison result{all_heads(model.config()), baselines(pairs), {}};
  result.agreements = AttentionMaps(model, ids)
                          .gather(Agreements(pairs, result.relations, result.heads), threads, progress)
                          .of_heads;
  for (std::size_t h = 0; h < result.heads.size(); ++h)
    for (const auto& agreement : result.agreements[h])
      require<NumbersError>(!agreement || std::isfinite(agreement->edges.mass()), "attention weights of ",
                            name(result.heads[h].site.kind), " layer ", result.heads[h].site.layer, " head ",
                            result.heads[h].head, " are not finite");
  return result;
}

}  // namespace polyhead::heads
