#include "polyhead/heads/weight_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "polyhead/core/error.h"
#include "polyhead/text/vocabulary.h"

namespace polyhead::heads {
namespace {

using Kind = nn::AttentionKind;

std::vector<bool> separators(const text::Vocabulary& vocabulary) {
  const auto separates = [](std::string_view piece) {
    constexpr std::string_view space = "\u2581";
    if (piece.starts_with(space)) piece.remove_prefix(space.size());
    return !piece.empty() && std::all_of(piece.begin(), piece.end(), [](char c) {
      return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
             (c >= '{' && c <= '~');
    });
  };
  std::vector<bool> result;
  for (const std::string& piece : vocabulary.pieces()) result.push_back(separates(piece));
  result[text::unk_id] = false;
  result[text::bos_id] = result[text::eos_id] = true;
  return result;
}

double entropy(std::span<const double> row) {
  double sum = 0;
  for (const double w : row)
    if (w > 0) sum -= w * std::log(w);
  return sum;
}

double log_variance(std::span<const double> row) {
  constexpr double smallest = std::numeric_limits<float>::min();
  double mean = 0, squares = 0;
  for (const double w : row) mean += std::log(std::max(w, smallest));
  mean /= static_cast<double>(row.size());
  for (const double w : row) squares += std::pow(std::log(std::max(w, smallest)) - mean, 2);
  return squares / static_cast<double>(row.size());
}

/// The keys that a query may see.
std::int64_t visible(Kind kind, const AttentionMap& map, std::int64_t query) {
  return kind == Kind::decoder ? query + 1 + map.keys() - map.queries() : map.keys();
}

std::int64_t place_of_largest(std::span<const double> row) {
  return std::max_element(row.begin(), row.end()) - row.begin();
}

/// √ of the Jensen–Shannon divergence of two rows, in bits.
double distance(std::span<const double> p, std::span<const double> q) {
  double divergence = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double m = (p[k] + q[k]) / 2;
    if (p[k] > 0) divergence += p[k] * std::log2(p[k] / m) / 2;
    if (q[k] > 0) divergence += q[k] * std::log2(q[k] / m) / 2;
  }
  return std::sqrt(std::clamp(divergence, 0., 1.));
}

/// Where the heads of the attention that `head` is of end.
std::size_t end_of_site(std::span<const Head> heads, std::size_t head) {
  std::size_t end = head;
  while (end < heads.size() && heads[end].site == heads[head].site) ++end;
  return end;
}

}  // namespace

TokenKnowledge token_knowledge(std::span<const decode::TokenPair> pairs, const text::TextPipeline& pipeline) {
  TokenKnowledge result{
      pairs, separators(pipeline.source().vocabulary()), separators(pipeline.target().vocabulary()), {}};
  result.source_counts.resize(result.source_separators.size());
  for (const decode::TokenPair& pair : pairs)
    for (const std::int32_t id : pair.source) ++result.source_counts.at(static_cast<std::size_t>(id));
  return result;
}

std::vector<std::vector<double>> rollout(std::span<const std::vector<const AttentionMap*>> layers,
                                         std::int64_t n) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> r(size * size);
  for (std::size_t i = 0; i < size; ++i) r[i * size + i] = 1;
  std::vector<std::vector<double>> result;
  for (const auto& heads : layers) {
    std::vector<double> next(size * size);
    for (std::size_t q = 0; q < size; ++q)
      for (std::size_t k = 0; k < size; ++k) {
        double weight = q == k ? 1 : 0;
        if (!heads.empty()) {
          double sum = 0;
          for (const AttentionMap* map : heads) sum += map->row(static_cast<std::int64_t>(q))[k];
          weight = (sum / static_cast<double>(heads.size()) + weight) / 2;
        }
        for (std::size_t i = 0; i < size; ++i) next[q * size + i] += weight * r[k * size + i];
      }
    result.push_back(r = std::move(next));
  }
  return result;
}

WeightStatistics::WeightStatistics(std::span<const Head> heads, const TokenKnowledge& tokens)
    : heads_(heads), tokens_(tokens), sums_(heads.size()) {
  for (std::size_t h = 0; h < heads.size(); ++h) sums_[h].distances.resize(end_of_site(heads, h) - h - 1);
  for (const Kind kind : {Kind::encoder, Kind::decoder}) {
    int layers = 0;
    for (const Head& head : heads)
      if (head.site.kind == kind) layers = std::max(layers, head.site.layer + 1);
    for (int layer = 0; layer < layers; ++layer) rollouts_.push_back({.site = {kind, layer}});
  }
}

bool WeightStatistics::separates(Kind kind, const decode::TokenPair& pair, std::int64_t key) const {
  const auto at = [&](const std::vector<bool>& ids, decode::TokenIds tokens, std::int64_t i) {
    return ids[static_cast<std::size_t>(tokens[static_cast<std::size_t>(i)])];
  };
  if (kind != Kind::decoder) return at(tokens_.source_separators, pair.source, key);
  return key == 0 || at(tokens_.target_separators, pair.target, key - 1);  // bos, then the target
}

void WeightStatistics::add_rare(std::span<const double> row, decode::TokenIds source, Sums& sums) const {
  const auto count = [&](std::size_t key) {
    return tokens_.source_counts[static_cast<std::size_t>(source[key])];
  };
  const std::size_t words = row.size() - 1;
  if (words < 2) return;
  std::int64_t rarest = count(0), rare = 0;
  for (std::size_t k = 1; k < words; ++k) rarest = std::min(rarest, count(k));
  for (std::size_t k = 0; k < words; ++k) rare += count(k) == rarest;
  ++sums.rare_rows;
  sums.rare_hits += count(static_cast<std::size_t>(place_of_largest(row.first(words)))) == rarest;
  sums.rare_chance += static_cast<double>(rare) / static_cast<double>(words);
}

void WeightStatistics::add_map(const Head& head, const decode::TokenPair& pair, const AttentionMap& map,
                               Sums& sums) const {
  const bool of_source = head.site.kind != Kind::decoder;
  for (std::int64_t q = 0; q < map.queries(); ++q) {
    const std::int64_t keys = visible(head.site.kind, map, q);
    const auto row = map.row(q).first(static_cast<std::size_t>(keys));
    ++sums.rows;
    const auto words = of_source ? row.first(row.size() - 1) : row;
    if (!words.empty()) sums.confidence += *std::max_element(words.begin(), words.end());
    for (std::int64_t k = 0; k < keys; ++k)
      if (separates(head.site.kind, pair, k)) sums.separator_mass += row[static_cast<std::size_t>(k)];
    if (of_source) add_rare(row, pair.source, sums);
    if (keys < 2) continue;
    ++sums.positions;
    const double h = entropy(row);
    sums.entropy += h;
    sums.relative_entropy += h / std::log(static_cast<double>(keys));
    sums.logit_variance += log_variance(row);
    const std::int64_t at = place_of_largest(row);
    ++sums.offsets[at - q];
    sums.saturated += row[static_cast<std::size_t>(at)] > 0.99;
  }
}

void WeightStatistics::add_distances(std::span<const AttentionMap> maps) {
  for (std::size_t h = 0; h < heads_.size(); ++h)
    for (std::size_t i = 0; i < sums_[h].distances.size(); ++i)
      for (std::int64_t q = 0; q < maps[h].queries(); ++q)
        sums_[h].distances[i] += distance(maps[h].row(q), maps[h + 1 + i].row(q));
}

void WeightStatistics::add_rollout(Kind kind, std::span<const AttentionMap> maps) {
  std::vector<std::vector<const AttentionMap*>> layers;
  std::int64_t n = 0;
  for (const RolloutSums& sums : rollouts_)
    if (sums.site.kind == kind) layers.emplace_back();
  for (std::size_t h = 0; h < heads_.size(); ++h)
    if (heads_[h].site.kind == kind) {
      layers[static_cast<std::size_t>(heads_[h].site.layer)].push_back(&maps[h]);
      n = maps[h].queries();
    }
  const std::vector<std::vector<double>> matrices = rollout(layers, n);
  for (RolloutSums& sums : rollouts_) {
    if (sums.site.kind != kind) continue;
    const std::vector<double>& matrix = matrices[static_cast<std::size_t>(sums.site.layer)];
    for (std::int64_t q = 0; q < n; ++q) {
      const auto seen = kind == Kind::decoder ? q + 1 : n;
      const auto row =
          std::span(matrix).subspan(static_cast<std::size_t>(q * n), static_cast<std::size_t>(n));
      if (seen < 2) continue;
      sums.self += row[static_cast<std::size_t>(q)];
      sums.relative_entropy += entropy(row) / std::log(static_cast<double>(seen));
      ++sums.positions;
    }
  }
}

void WeightStatistics::add(std::int64_t pair, std::span<const AttentionMap> maps) {
  const decode::TokenPair& ids = tokens_.pairs[static_cast<std::size_t>(pair)];
  for (std::size_t h = 0; h < heads_.size(); ++h) add_map(heads_[h], ids, maps[h], sums_[h]);
  add_distances(maps);
  for (const Kind kind : {Kind::encoder, Kind::decoder}) add_rollout(kind, maps);
}

void WeightStatistics::merge(const WeightStatistics& other) {
  for (std::size_t h = 0; h < sums_.size(); ++h) {
    Sums& a = sums_[h];
    const Sums& b = other.sums_[h];
    for (auto member : {&Sums::rows, &Sums::positions, &Sums::rare_rows, &Sums::rare_hits, &Sums::saturated})
      a.*member += b.*member;
    for (auto member : {&Sums::entropy, &Sums::relative_entropy, &Sums::confidence, &Sums::rare_chance,
                        &Sums::separator_mass, &Sums::logit_variance})
      a.*member += b.*member;
    for (const auto& [offset, count] : b.offsets) a.offsets[offset] += count;
    for (std::size_t i = 0; i < a.distances.size(); ++i) a.distances[i] += b.distances[i];
  }
  for (std::size_t i = 0; i < rollouts_.size(); ++i) {
    rollouts_[i].self += other.rollouts_[i].self;
    rollouts_[i].relative_entropy += other.rollouts_[i].relative_entropy;
    rollouts_[i].positions += other.rollouts_[i].positions;
  }
}

WeightFigures WeightStatistics::figures(std::size_t head) const {
  const Sums& s = sums_[head];
  const auto rows = static_cast<double>(s.rows), positions = static_cast<double>(s.positions),
             rare = static_cast<double>(s.rare_rows);
  WeightFigures result{.positions = s.positions,
                       .entropy = s.entropy / positions,
                       .relative_entropy = s.relative_entropy / positions,
                       .confidence = s.confidence / rows,
                       .offsets = s.offsets,
                       .rare_word = static_cast<double>(s.rare_hits) / rare,
                       .rare_word_baseline = s.rare_chance / rare,
                       .separator_mass = s.separator_mass / rows,
                       .logit_deviation = std::sqrt(s.logit_variance / positions),
                       .saturation = static_cast<double>(s.saturated) / positions};
  std::int64_t most = 0;
  for (const auto& [offset, count] : s.offsets)
    if (count > most || (count == most && std::abs(offset) < std::abs(result.offset))) {
      most = count;
      result.offset = offset;
    }
  result.offset_share = static_cast<double>(most) / positions;
  return result;
}

double WeightStatistics::jensen_shannon(std::size_t head, std::size_t other) const {
  if (head == other) return 0;
  const auto [first, second] = std::minmax(head, other);
  require(second - first <= sums_[first].distances.size(),
          "Jensen-Shannon distance of heads of different attentions");
  return sums_[first].distances[second - first - 1] / static_cast<double>(sums_[first].rows);
}

std::vector<RolloutFigures> WeightStatistics::rollouts() const {
  std::vector<RolloutFigures> result;
  for (const RolloutSums& s : rollouts_) {
    const auto positions = static_cast<double>(s.positions);
    result.push_back({s.site, s.self / positions, s.relative_entropy / positions});
  }
  return result;
}

}  // namespace polyhead::heads
