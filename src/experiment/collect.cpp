#include "polyhead/experiment/collect.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"
#include "polyhead/train/run_folder.h"

namespace polyhead::experiment {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> finite(const Json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) ? std::optional(value.get<double>())
                                                                 : std::nullopt;
}

bool is_probed(const std::string& metric) {
  return metric == "slot_accuracy" || metric == "contrastive_accuracy";
}

/// A figure of all sentences or of a phenomenon, with its interval.
Measure probed(const Json& figures, const std::string& metric) {
  const Json& estimate = figures.at(metric);
  return {.metric = metric,
          .value = finite(estimate.at("score")),
          .low = finite(estimate.at("low")),
          .high = finite(estimate.at("high")),
          .n = figures.at(is_probed(metric) ? "probes" : "sentences").get<std::int64_t>()};
}

std::vector<Measure> measures_of(const Json& report, const EvaluationPlan& evaluation) {
  std::vector<Measure> measures;
  const auto all = report.find("all");
  for (const std::string& metric : evaluation.metrics) {
    if (all != report.end() && all->contains(metric))
      measures.push_back(probed(*all, metric));
    else
      measures.push_back({.metric = metric, .value = finite(report.at(metric).at("score"))});
  }
  if (all == report.end()) return measures;
  for (const auto& [phenomenon, figures] : report.at("phenomena").items())
    for (const std::string& metric : evaluation.metrics)
      if (figures.contains(metric)) {
        measures.push_back(probed(figures, metric));
        measures.back().phenomenon = phenomenon;
      }
  return measures;
}

}  // namespace

Outcome training_outcome(const std::string& run_folder, const train::Config& config) {
  const std::string path = train::RunFolder(run_folder).log();
  std::ifstream log(path);
  require<FileError>(log.is_open(), path, ": cannot be read");
  const std::string metric = config::Codec<train::Metric>::text(config.training.best_metric);
  Outcome outcome{.learning_rate = config.training.schedule.learning_rate};
  Measure valid{.split = "valid", .metric = metric};
  double tokens = 0, seconds = 0;
  for (std::string line; std::getline(log, line);) try {
      const Json entry = Json::parse(line);
      if (entry.contains("validation")) {
        const auto value =
            entry.at("validation").contains(metric) ? finite(entry["validation"][metric]) : std::nullopt;
        const bool lower = train::lower_is_better(config.training.best_metric);
        if (value && (!valid.value || (lower ? *value < *valid.value : *value > *valid.value)))
          valid.value = value;
      } else {
        const double n = entry.at("target_tokens");
        tokens += n;
        seconds += n / entry.at("target_tokens_per_second").get<double>();
        outcome.step = entry.at("step");
        outcome.train_seconds = entry.at("seconds");
      }
    } catch (const Json::exception&) {
      throw FileError(concat(path, ": not a log of training: ", line.substr(0, 60)));
    }
  if (seconds > 0) outcome.tokens_per_second = tokens / seconds;
  if (valid.value) outcome.measures.push_back(std::move(valid));
  return outcome;
}

std::vector<std::string> evaluate_metrics(const EvaluationPlan& evaluation) {
  std::vector<std::string> metrics;
  for (const std::string& metric : evaluation.metrics)
    if (!is_probed(metric)) metrics.push_back(metric);
  if (metrics.empty()) metrics.emplace_back("exact_match");
  return metrics;
}

std::vector<Measure> measures_of(std::string_view json, const std::string& path, const std::string& split,
                                 const EvaluationPlan& evaluation) {
  try {
    std::vector<Measure> measures = measures_of(Json::parse(json), evaluation);
    for (Measure& measure : measures) {
      measure.split = split;
      measure.limit = evaluation.limit;
    }
    return measures;
  } catch (const Json::exception&) {
    throw FileError(path + ": not what polyhead evaluate --json writes");
  }
}

}  // namespace polyhead::experiment
