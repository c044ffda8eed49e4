#include "polyhead/metrics/metrics.h"

#include <array>

#include "names.h"
#include "polyhead/metrics/bleu.h"
#include "polyhead/metrics/chrf.h"
#include "polyhead/metrics/exact_match.h"
#include "polyhead/metrics/ter.h"
#include "polyhead/metrics/token_accuracy.h"

namespace polyhead::metrics {

namespace {

constexpr std::array<Metric, 5> table{{
    {"bleu", bleu, bleu_statistics, true},
    {"chrf", chrf, chrf_statistics, true},
    {"ter", ter, ter_statistics, false},
    {"exact_match", exact_match, exact_match_statistics, true},
    {"token_accuracy", token_accuracy, token_accuracy_statistics, true},
}};

}  // namespace

std::vector<std::string> metric_names() { return names_of(table); }

const Metric& find_metric(const std::string& name) { return find_row(table, "metric", name); }

Score corpus(const std::string& metric, const std::vector<std::string>& hypotheses,
             const std::vector<std::vector<std::string>>& references, const Options& options) {
  return find_metric(metric).compute(Corpus(hypotheses, references), options);
}

SentenceStatistics sentence_statistics(const std::string& metric, const std::vector<std::string>& hypotheses,
                                       const std::vector<std::vector<std::string>>& references,
                                       const Options& options) {
  return find_metric(metric).statistics(Corpus(hypotheses, references), options);
}

Score sentence(const std::string& metric, const std::string& hypothesis,
               const std::vector<std::string>& references, Options options) {
  options.effective_order = true;
  std::vector<std::vector<std::string>> streams;
  for (const std::string& reference : references) streams.push_back({reference});
  return corpus(metric, {hypothesis}, streams, options);
}

}  // namespace polyhead::metrics
