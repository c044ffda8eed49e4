#include "phenomena.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model.h"
#include "polyhead/core/error.h"
#include "polyhead/core/parallel.h"
#include "polyhead/data/grammar/grammar.h"
#include "polyhead/data/tasks.h"

namespace polyhead::tools {
namespace {

namespace grammar = data::grammar;
using Json = nlohmann::ordered_json;

bool is_phenomenon(std::string_view split) {
  return grammar::find_split(split).kind == grammar::SplitKind::phenomenon;
}

AnnotatedSplit annotated_split(const std::string& name, const train::Config& config, int limit) {
  const grammar::Split& row = grammar::find_split(name);
  const int size =
      row.kind == grammar::SplitKind::usual ? data::size_of(config.data, split_of(name)) : row.size;
  AnnotatedSplit split{name, grammar::generate(name, limit > 0 ? std::min(limit, size) : size, config.seed)};
  if (is_phenomenon(name))
    for (data::Pair& pair : split.pairs)
      std::erase_if(pair.probes, [&](const data::Probe& p) { return data::name(p.phenomenon) != name; });
  return split;
}

Json estimate_json(const metrics::Estimate& e) {
  return {{"score", e.score}, {"low", e.low}, {"high", e.high}};
}

Json rates_json(const train::ProbeRates& rates) {
  return {{"sentences", rates.sentences},
          {"probes", rates.probes},
          {"exact_match", estimate_json(rates.exact_match)},
          {"slot_accuracy", estimate_json(rates.slot_accuracy)},
          {"contrastive_accuracy", estimate_json(rates.contrastive_accuracy)}};
}

Json report_json(const train::PhenomenonReport& report) {
  Json object = rates_json(report.rates);
  object["chrf"] = estimate_json(report.chrf);
  for (const auto& [name, groups] : {std::pair{"by_distance", &report.by_distance},
                                     {"by_attractors", &report.by_attractors},
                                     {"by_depth", &report.by_depth}})
    for (const auto& [value, rates] : *groups) object[name][std::to_string(value)] = rates_json(rates);
  return object;
}

std::string row(std::string_view split, std::string_view phenomenon, const train::PhenomenonReport& report) {
  const train::ProbeRates& rates = report.rates;
  std::string text = fmt::format("{:17}  {:10} {:9} {:7}", split, phenomenon, rates.sentences, rates.probes);
  for (const metrics::Estimate& e :
       {rates.exact_match, rates.slot_accuracy, rates.contrastive_accuracy, report.chrf})
    text += fmt::format("   {:5.1f} [{:5.1f}, {:5.1f}]", e.score, e.low, e.high);
  return text + '\n';
}

}  // namespace

std::vector<std::string> grammar_splits(const std::string& name) {
  if (name != "all") {
    const auto splits = grammar::splits();
    require(std::any_of(splits.begin(), splits.end(), [&](const auto& split) { return split.name == name; }),
            "--split: \"", name, "\", expected one of all, ", grammar::split_names());
    return {name};
  }
  std::vector<std::string> names{"test"};
  for (const grammar::Split& split : grammar::splits())
    if (split.kind == grammar::SplitKind::phenomenon || split.kind == grammar::SplitKind::generalisation)
      names.emplace_back(split.name);
  return names;
}

std::vector<AnnotatedSplit> annotated_splits(const std::vector<std::string>& names,
                                             const train::Config& config, int limit, int threads) {
  std::vector<AnnotatedSplit> splits(names.size());
  parallel_for(threads, static_cast<std::int64_t>(names.size()), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    splits[at] = annotated_split(names[at], config, limit);
  });
  return splits;
}

Json probe_json(const data::Probe& p) {
  return {{"phenomenon", data::name(p.phenomenon)},
          {"slot", p.slot},
          {"word", p.word},
          {"cue", p.cue},
          {"distance", p.distance},
          {"attractors", p.attractors},
          {"depth", p.depth},
          {"contrast", data::text(p.contrast)}};
}

Json probing_json(const train::ProbingReport& report) {
  Json object{{"all", report_json(report.all)}, {"phenomena", Json::object()}};
  for (const auto& [phenomenon, of_phenomenon] : report.phenomena)
    object["phenomena"][std::string(data::name(phenomenon))] = report_json(of_phenomenon);
  return object;
}

std::string probing_table(const std::vector<std::pair<std::string, train::ProbingReport>>& splits) {
  std::string text = fmt::format("{:17}  {:10} {:>9} {:>7}", "split", "phenomenon", "sentences", "probes");
  for (const char* column : {"exact match", "slot accuracy", "contrastive", "chrF"})
    text += fmt::format("   {:20}", column);
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
  for (const auto& [name, report] : splits) {
    if (!is_phenomenon(name)) text += row(name, "all", report.all);
    for (const auto& [phenomenon, of_phenomenon] : report.phenomena)
      text += row(name, data::name(phenomenon), of_phenomenon);
  }
  return text + "in percent, with 95% intervals: Wilson's, of chrF the bootstrap's\n";
}

}  // namespace polyhead::tools
