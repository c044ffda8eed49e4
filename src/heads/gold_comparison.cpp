#include "polyhead/heads/gold_comparison.h"

#include <algorithm>
#include <cmath>

#include "polyhead/core/error.h"
#include "polyhead/data/tasks.h"

namespace polyhead::heads {
namespace {

bool has_gold(const data::Pair& pair) {
  const auto any = [](const data::Dependencies& tree) {
    return std::any_of(tree.heads.begin(), tree.heads.end(), [](int head) { return head >= 0; });
  };
  return !pair.alignment.empty() || any(pair.source_tree) || any(pair.target_tree);
}

void check_pieces(const std::vector<std::int32_t>& ids, const std::vector<std::string>& tokens) {
  require(ids.size() == tokens.size() + 1, "tokenizer: \"", data::text(tokens), "\" is ", tokens.size(),
          " tokens and ", ids.size() - 1,
          " pieces, expected one piece a token (tokenizer.kind: word) to compare with gold annotations");
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

std::vector<decode::TokenPair> AnnotatedPairs::ids() const {
  std::vector<decode::TokenPair> result;
  for (std::size_t i = 0; i < pairs.size(); ++i) result.push_back({sources[i], targets[i]});
  return result;
}

AnnotatedPairs load_annotated(const data::DataConfig& config, data::Split split, std::uint64_t seed,
                              const text::TextPipeline& pipeline, int max_length, std::int64_t limit) {
  require(config.task != "files",
          "data.task: files have no gold alignment or dependencies, expected a task that has them");
  AnnotatedPairs result;
  bool gold = false;
  std::int64_t seen = 0;
  data::each_pair(config, split, seed, [&](data::Pair&& pair) {
    if (limit > 0 && seen == limit) return;
    ++seen;
    gold = gold || has_gold(pair);
    if (!has_gold(pair)) return;
    std::vector<std::int32_t> source = pipeline.encode_source(data::text(pair.source)),
                              target = pipeline.encode_target(data::text(pair.target));
    check_pieces(source, pair.source);
    check_pieces(target, pair.target);
    if (std::max(source.size(), target.size()) > static_cast<std::size_t>(max_length)) {
      ++result.too_long;
      return;
    }
    result.pairs.push_back(std::move(pair));
    result.sources.push_back(std::move(source));
    result.targets.push_back(std::move(target));
  });
  require(gold, "data.task: the pairs of \"", config.task,
          "\" have no gold alignment or dependencies, expected a task that has them");
  require<DataError>(!result.pairs.empty(), "data.task ", config.task, ": all ", result.too_long,
                     " pairs have more than ", max_length, " tokens (model.max_length)");
  return result;
}

GoldComparison compare_with_gold(const nn::Transformer& model, const AnnotatedPairs& data, int threads,
                                 const decode::Progress& progress) {
  GoldComparison result{all_heads(model.config()), baselines(data.pairs), {}};
  const std::vector<decode::TokenPair> ids = data.ids();
  result.agreements = AttentionMaps(model, ids)
                          .gather(Agreements(data.pairs, result.relations, result.heads), threads, progress)
                          .of_heads;
  for (std::size_t h = 0; h < result.heads.size(); ++h)
    for (const auto& agreement : result.agreements[h])
      require<NumbersError>(!agreement || std::isfinite(agreement->edges.mass()), "attention weights of ",
                            name(result.heads[h].site.kind), " layer ", result.heads[h].site.layer, " head ",
                            result.heads[h].head, " are not finite");
  return result;
}

}  // namespace polyhead::heads
