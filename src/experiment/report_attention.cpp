#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"
#include "polyhead/data/tasks.h"
#include "polyhead/heads/attention_maps.h"
#include "polyhead/heads/gold.h"
#include "polyhead/text/vocabulary.h"
#include "report_parts.h"

namespace polyhead::experiment {
namespace {

using Json = nlohmann::ordered_json;

/// Sentence pairs that are shown, the ids of a side of one, and the bytes of all weights together, at most.
constexpr std::size_t most_pairs = 24, most_ids = 80, most_bytes = 4 << 20;

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? bytes[i + j] : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

/// What is shown of the data: pairs as text, or with their annotations, and ids.
struct Shown {
  std::vector<data::Pair> pairs;  ///< tokens are the pieces of the ids; of plain text nothing else is known
  std::vector<std::vector<std::int32_t>> sources, targets;

  bool full() const { return pairs.size() == most_pairs; }

  void add(data::Pair&& pair, const text::TextPipeline& pipeline, std::size_t limit) {
    if (full()) return;
    std::vector<std::int32_t> source = pipeline.encode_source(data::text(pair.source)),
                              target = pipeline.encode_target(data::text(pair.target));
    if (std::max(source.size(), target.size()) > limit || std::min(source.size(), target.size()) < 2) return;
    // Annotations are of tokens: what is cut into other pieces loses them.
    if (source.size() != pair.source.size() + 1 || target.size() != pair.target.size() + 1) {
      pair = {};
      pair.source = pipeline.source().pieces_of(source);
      pair.target = pipeline.target().pieces_of(target);
    }
    pairs.push_back(std::move(pair));
    sources.push_back(std::move(source));
    targets.push_back(std::move(target));
  }
};

bool has_files(const data::FilePair& files) {
  std::error_code none;
  return std::filesystem::is_regular_file(files.source, none) &&
         std::filesystem::is_regular_file(files.target, none);
}

std::optional<data::Split> split_with_data(const data::DataConfig& config) {
  for (const auto& [split, files] :
       {std::pair{data::Split::test, config.test}, {data::Split::valid, config.valid}})
    if (config.task != "files" || has_files(files)) return split;
  return {};
}

Shown shown_pairs(const train::LoadedModel& loaded, data::Split split) {
  Shown shown;
  const std::size_t limit =
      std::min<std::size_t>(most_ids, static_cast<std::size_t>(loaded.config.model.max_length));
  const data::DataConfig& config = loaded.config.data;
  if (config.task == "files") {
    const data::ParallelText text = data::load_text(config, split, loaded.config.seed);
    for (std::size_t i = 0; i < text.source.size() && !shown.full(); ++i) {
      data::Pair pair;
      pair.source = {text.source[i]};
      pair.target = {text.target[i]};
      shown.add(std::move(pair), loaded.pipeline, limit);
    }
  } else {
    data::each_pair(config, split, loaded.config.seed,
                    [&](data::Pair&& pair) { shown.add(std::move(pair), loaded.pipeline, limit); });
  }
  return shown;
}

std::vector<std::string> with_end(std::vector<std::string> tokens) {
  tokens.emplace_back(text::special_pieces[text::eos_id]);
  return tokens;
}

Json gold_json(const data::Pair& pair) {
  Json gold = Json::object();
  for (const heads::Relation relation : heads::all_relations()) {
    const heads::FirstPosition first = heads::first_position(relation);
    Json edges = Json::array();
    for (const heads::Edge& edge : heads::gold_edges(relation, pair))
      edges.push_back({edge.query + first.query, edge.key + first.key, edge.label});
    if (!edges.empty()) gold[std::string(name(relation))] = std::move(edges);
  }
  return gold;
}

std::vector<std::uint8_t> bytes_of(std::span<const heads::AttentionMap> maps) {
  std::vector<std::uint8_t> bytes;
  for (const heads::AttentionMap& map : maps)
    for (std::int64_t query = 0; query < map.queries(); ++query)
      for (const double weight : map.row(query)) {
        require<NumbersError>(std::isfinite(weight), "attention: a weight is not finite");
        bytes.push_back(static_cast<std::uint8_t>(std::lround(255 * weight)));
      }
  return bytes;
}

Json kinds_json(const nn::ModelConfig& config) {
  Json kinds = Json::array();
  for (const heads::Head& head : heads::all_heads(config)) {
    if (kinds.empty() || kinds.back()["kind"] != name(head.site.kind))
      kinds.push_back({{"kind", name(head.site.kind)}, {"heads", Json::array()}});
    Json& counts = kinds.back()["heads"];
    while (counts.size() <= static_cast<std::size_t>(head.site.layer)) counts.push_back(0);
    counts.back() = counts.back().get<int>() + 1;
  }
  return kinds;
}

Json sentence_json(const data::Pair& pair, const std::vector<std::uint8_t>& weights) {
  std::vector<std::string> input{std::string(text::special_pieces[text::bos_id])};
  input.insert(input.end(), pair.target.begin(), pair.target.end());
  return {{"source", with_end(pair.source)},
          {"input", input},
          {"output", with_end(pair.target)},
          {"gold", gold_json(pair)},
          {"weights", base64(weights)}};
}

}  // namespace

Json attention_json(const train::LoadedModel& loaded, int threads) {
  const std::optional<data::Split> split = split_with_data(loaded.config.data);
  if (!split) return nullptr;
  const Shown shown = shown_pairs(loaded, *split);
  if (shown.pairs.empty()) return nullptr;
  std::vector<decode::TokenPair> ids;
  for (std::size_t i = 0; i < shown.pairs.size(); ++i) ids.push_back({shown.sources[i], shown.targets[i]});
  std::vector<std::vector<std::uint8_t>> weights(ids.size());
  heads::AttentionMaps(*loaded.model, ids)
      .visit(threads, [&](std::int64_t, std::int64_t pair, std::span<const heads::AttentionMap> maps) {
        weights[static_cast<std::size_t>(pair)] = bytes_of(maps);
      });
  Json result{{"checkpoint", loaded.path},   {"step", loaded.step},
              {"split", data::name(*split)}, {"kinds", kinds_json(loaded.config.model)},
              {"relations", Json::object()}, {"sentences", Json::array()}};
  for (const heads::Relation relation : heads::all_relations())
    result["relations"][std::string(name(relation))] = name(kind_of(relation));
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    bytes += weights[i].size();
    if (i > 0 && bytes > most_bytes) break;
    result["sentences"].push_back(sentence_json(shown.pairs[i], weights[i]));
  }
  return result;
}

}  // namespace polyhead::experiment
