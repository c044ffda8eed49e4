#include "polyhead/experiment/sentences.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"
#include "polyhead/metrics/metrics.h"

namespace polyhead::experiment {
namespace {

using nlohmann::json;

double count_right(const json& probes, const char* key) {
  return static_cast<double>(
      std::count_if(probes.begin(), probes.end(), [&](const json& p) { return p.at(key).get<bool>(); }));
}

metrics::SentenceStatistics perplexity(const std::vector<double>& losses, const std::vector<double>& tokens) {
  std::vector<double> rows;
  for (std::size_t i = 0; i < losses.size(); ++i) rows.insert(rows.end(), {losses[i], tokens[i]});
  return {2, std::move(rows), [](std::span<const double> sums) { return std::exp(sums[0] / sums[1]); }};
}

}  // namespace

Sentences::Sentences(std::string path) : path_(std::move(path)) {
  std::ifstream in(path_, std::ios::binary);
  require<FileError>(in.is_open(), path_, ": cannot be read");
  std::string texts;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) try {
      ++number;
      const json sentence = json::parse(line);
      translations_.push_back(sentence.at("translation").get<std::string>());
      targets_.push_back(sentence.at("target").get<std::string>());
      texts += sentence.at("source").get<std::string>() + '\n' + targets_.back() + '\n';
      if (const json tokens = sentence.value("tokens", json()); tokens.is_number()) {
        losses_.push_back(-sentence.at("log_probability").get<double>());
        tokens_.push_back(tokens.get<double>());
      }
      const json& probes = sentence.at("probes");
      if (probes.empty()) continue;
      slots_.push_back(count_right(probes, "slot_correct"));
      contrasts_.push_back(count_right(probes, "contrastive_correct"));
      probes_.push_back(static_cast<double>(probes.size()));
    } catch (const json::exception&) {
      throw FileError(
          concat(path_, ":", number, ": not a sentence as polyhead evaluate --sentences writes it"));
    }
  require<FileError>(number > 0, path_, ": has no sentences");
  digest_ = hash(texts);
}

metrics::SentenceStatistics Sentences::statistics(const std::string& metric,
                                                  const metrics::Options& options) const {
  const auto need = [&](const std::vector<double>& values, const char* what) {
    require<FileError>(!values.empty(), path_, ": has no ", what, ", which ", metric, " takes");
  };
  if (metric == "loss" || metric == "perplexity") {
    need(tokens_, "numbers of tokens");
    return metric == "loss" ? metrics::ratio_statistics(losses_, tokens_) : perplexity(losses_, tokens_);
  }
  if (metric == "slot_accuracy" || metric == "contrastive_accuracy") {
    need(probes_, "probes");
    return metrics::ratio_statistics(metric == "slot_accuracy" ? slots_ : contrasts_, probes_, 100);
  }
  require<FileError>(metric != "token_accuracy", path_, ": has no most probable tokens, which ", metric,
                     " takes");
  return metrics::sentence_statistics(metric, translations_, {targets_}, options);
}

}  // namespace polyhead::experiment
