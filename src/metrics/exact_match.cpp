#include "polyhead/metrics/exact_match.h"

#include <algorithm>

#include "polyhead/core/unicode.h"

namespace polyhead::metrics {

SentenceStatistics exact_match_statistics(const Corpus& corpus, const Options& options) {
  const auto read = [&](const std::string& line) {
    return unicode::strip(options.lowercase ? unicode::lowercase(line) : line);
  };
  std::vector<double> matches;
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    const std::string hypothesis = read(corpus.hypotheses[line]);
    const bool equal = std::any_of(corpus.references.begin(), corpus.references.end(),
                                   [&](const auto& stream) { return read(stream[line]) == hypothesis; });
    matches.push_back(equal ? 1 : 0);
  }
  return mean_statistics(matches, 100);
}

Score exact_match(const Corpus& corpus, const Options& options) {
  const SentenceStatistics statistics = exact_match_statistics(corpus, options);
  const std::vector<double> sums = statistics.sums();
  return {statistics.score_of(sums),
          make_signature(corpus, {{"case", options.lowercase ? "lc" : "mixed"}}),
          {{"matches", sums[0]}, {"lines", sums[1]}}};
}

}  // namespace polyhead::metrics
