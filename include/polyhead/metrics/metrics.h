#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "polyhead/metrics/score.h"
#include "polyhead/metrics/sentence_statistics.h"

namespace polyhead::metrics {

/// A row of the table of metrics.
struct Metric {
  std::string_view name;
  Score (*compute)(const Corpus& corpus, const Options& options);
  /// What that score is made of, sentence by sentence.
  SentenceStatistics (*statistics)(const Corpus& corpus, const Options& options);
  bool higher_is_better;
};

/// The names in the table: bleu, chrf, ter, exact_match, token_accuracy.
std::vector<std::string> metric_names();
/// Throws Error for a name that is not in metric_names().
const Metric& find_metric(const std::string& name);

/// The score of a corpus: `references[r][line]` is the r-th reference of a line.
/// Throws Error for an unknown metric, no reference stream or an option the metric cannot take; DataError
/// when there are no lines, the streams differ in length, or a line is not UTF-8.
Score corpus(const std::string& metric, const std::vector<std::string>& hypotheses,
             const std::vector<std::vector<std::string>>& references, const Options& options = {});

/// What that score is made of, for intervals and tests (metrics/significance.h). Throws as corpus().
SentenceStatistics sentence_statistics(const std::string& metric, const std::vector<std::string>& hypotheses,
                                       const std::vector<std::vector<std::string>>& references,
                                       const Options& options = {});

/// The score of one line: that of a corpus of it, BLEU with the effective order.
Score sentence(const std::string& metric, const std::string& hypothesis,
               const std::vector<std::string>& references, Options options = {});

}  // namespace polyhead::metrics
