#include "diagnostics.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "polyhead/data/corpus.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;

Json offsets_json(const heads::WeightFigures& weights) {
  constexpr std::int64_t farthest = 10;
  const auto positions = static_cast<double>(weights.positions);
  Json result = Json::object();
  double other = 0;
  for (const auto& [offset, count] : weights.offsets) {
    const double share = static_cast<double>(count) / positions;
    if (std::abs(offset) <= farthest)
      result[std::to_string(offset)] = share;
    else
      other += share;
  }
  result["other"] = other;
  return result;
}

Json matrix_json(const std::vector<double>& values, std::size_t n) {
  Json rows = Json::array();
  for (std::size_t a = 0; a < n; ++a)
    rows.push_back(std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(a * n),
                                       values.begin() + static_cast<std::ptrdiff_t>((a + 1) * n)));
  return rows;
}

/// Mean over the pairs of different heads.
double mean_of_pairs(const std::vector<double>& values, std::size_t n) {
  double sum = 0;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) sum += values[a * n + b];
  return sum / (static_cast<double>(n * (n - 1)) / 2);
}

/// The first pairs of a split that the model can read, with their ids.
struct ReadPairs {
  std::vector<std::vector<std::int32_t>> sources, targets;
  std::vector<decode::TokenPair> ids;

  ReadPairs(const train::Config& config, const text::TextPipeline& pipeline) {
    constexpr std::size_t most = 200;
    const data::Split split =
        data::has_split(config.data, data::Split::valid) ? data::Split::valid : data::Split::train;
    const data::ParallelText text = data::load_text(config.data, split, config.seed);
    const auto fits = [&](const std::vector<std::int32_t>& side) {
      return side.size() > 1 && side.size() <= static_cast<std::size_t>(config.model.max_length);
    };
    for (std::size_t i = 0; i < text.source.size() && sources.size() < most; ++i) {
      std::vector<std::int32_t> source = pipeline.encode_source(text.source[i]),
                                target = pipeline.encode_target(text.target[i]);
      if (!fits(source) || !fits(target)) continue;
      sources.push_back(std::move(source));
      targets.push_back(std::move(target));
    }
    for (std::size_t i = 0; i < sources.size(); ++i) ids.push_back({sources[i], targets[i]});
  }
};

std::string number(double value) { return std::isnan(value) ? "-" : fmt::format("{:.3f}", value); }

}  // namespace

Json head_json(const heads::HeadDiagnostics& head) {
  const heads::WeightFigures& w = head.weights;
  const heads::OutputFigures& o = head.outputs;
  return {{"entropy", w.entropy},
          {"relative_entropy", w.relative_entropy},
          {"confidence", w.confidence},
          {"offset", w.offset},
          {"offset_share", w.offset_share},
          {"positional", w.positional()},
          {"offsets", offsets_json(w)},
          {"rare_word", w.rare_word},
          {"rare_word_baseline", w.rare_word_baseline},
          {"separator_mass", w.separator_mass},
          {"output_norm", o.output_norm},
          {"relative_output_norm", o.relative_output_norm},
          {"gradient_norm", o.gradient_norm},
          {"effective_rank", o.effective_rank},
          {"logit_deviation", w.logit_deviation},
          {"saturation", w.saturation}};
}

Json warnings_json(const std::vector<heads::Warning>& warnings) {
  Json result = Json::array();
  for (const heads::Warning& w : warnings) {
    result.push_back({{"kind", nn::name(w.head.site.kind)},
                      {"layer", w.head.site.layer},
                      {"head", w.head.head},
                      {"warning", w.warning},
                      {"figure", w.figure},
                      {"value", w.value},
                      {"threshold", w.threshold},
                      {"message", w.message()}});
    if (w.other) result.back()["other"] = *w.other;
  }
  return result;
}

Json similarity_json(const heads::Diagnostics& diagnostics) {
  Json result = Json::array();
  for (const heads::SiteSimilarity& s : diagnostics.similarities)
    result.push_back({{"kind", nn::name(s.site.kind)},
                      {"layer", s.site.layer},
                      {"heads", s.heads},
                      {"jensen_shannon", matrix_json(s.jensen_shannon, s.heads)},
                      {"cka", matrix_json(s.cka, s.heads)},
                      {"cosine", matrix_json(s.cosine, s.heads)}});
  return result;
}

Json rollout_json(const heads::Diagnostics& diagnostics) {
  Json result = Json::object();
  for (const heads::RolloutFigures& r : diagnostics.rollouts)
    result[std::string(nn::name(r.site.kind))].push_back(
        {{"layer", r.site.layer}, {"self", r.self}, {"relative_entropy", r.relative_entropy}});
  return result;
}

std::string diagnostics_table(const heads::Diagnostics& diagnostics) {
  std::string table = fmt::format("{:7}  {:5}  {:4}", "kind", "layer", "head");
  for (const char* title : {"entropy", "H/log n", "confidence", "offset", "share", "rare word", "separators",
                            "norm", "rel. norm", "gradient", "eff. rank", "logit dev.", "saturated"})
    table += fmt::format("  {:>10}", title);
  table += '\n';
  for (const heads::HeadDiagnostics& d : diagnostics.heads) {
    const heads::WeightFigures& w = d.weights;
    const heads::OutputFigures& o = d.outputs;
    table += fmt::format("{:7}  {:>5}  {:>4}", nn::name(d.head.site.kind), d.head.site.layer, d.head.head);
    for (const std::string& cell :
         {number(w.entropy), number(w.relative_entropy), number(w.confidence),
          fmt::format("{:+d}{}", w.offset, w.positional() ? "!" : ""), number(w.offset_share),
          number(w.rare_word), number(w.separator_mass), number(o.output_norm),
          number(o.relative_output_norm), fmt::format("{:.2e}", o.gradient_norm), number(o.effective_rank),
          number(w.logit_deviation), number(w.saturation)})
      table += fmt::format("  {:>10}", cell);
    table += '\n';
  }
  table += "offset: where the largest weight is most often, and how often; !: positional, at least 90%\n";
  std::string between;
  for (const heads::SiteSimilarity& s : diagnostics.similarities)
    if (s.heads > 1)
      between += fmt::format("{:7}  {:>5}  {:>14}  {:>6}  {:>6}\n", nn::name(s.site.kind), s.site.layer,
                             number(mean_of_pairs(s.jensen_shannon, s.heads)),
                             number(mean_of_pairs(s.cka, s.heads)), number(mean_of_pairs(s.cosine, s.heads)));
  if (!between.empty())
    table += fmt::format("\n{:7}  {:5}  {:>14}  {:>6}  {:>6}   means over pairs of heads\n{}", "kind",
                         "layer", "Jensen-Shannon", "CKA", "cosine", between);
  for (const heads::Warning& w : heads::warnings(diagnostics)) table += "\nwarning: " + w.message();
  return table + (table.back() == '\n' ? "" : "\n");
}

std::function<std::string(const nn::Transformer&, const text::TextPipeline&)> training_diagnostics(
    const train::Config& config, int threads) {
  if (!config.training.diagnostics_every) return {};
  return [&config, threads](const nn::Transformer& model, const text::TextPipeline& pipeline) {
    const ReadPairs pairs(config, pipeline);
    Json json{{"heads", Json::array()}};
    const heads::Diagnostics diagnostics = heads::diagnose(model, pipeline, pairs.ids, threads);
    for (const heads::HeadDiagnostics& head : diagnostics.heads) {
      Json entry{
          {"kind", nn::name(head.head.site.kind)}, {"layer", head.head.site.layer}, {"head", head.head.head}};
      entry.update(head_json(head));
      entry.erase("offsets");
      json["heads"].push_back(std::move(entry));
    }
    json["warnings"] = warnings_json(heads::warnings(diagnostics));
    return json.dump();
  };
}

}  // namespace polyhead::tools
