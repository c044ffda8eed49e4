#include "polyhead/metrics/token_accuracy.h"

#include <algorithm>

#include "polyhead/core/unicode.h"

namespace polyhead::metrics {

namespace {

struct Agreement {
  double matches = 0, positions = 0;

  double share() const { return positions > 0 ? matches / positions : 1; }
};

using Tokens = std::vector<std::string>;

Agreement agreement(const Tokens& hypothesis, const Tokens& reference) {
  Agreement result;
  result.positions = static_cast<double>(std::max(hypothesis.size(), reference.size()));
  for (std::size_t i = 0; i < std::min(hypothesis.size(), reference.size()); ++i)
    if (hypothesis[i] == reference[i]) ++result.matches;
  return result;
}

}  // namespace

SentenceStatistics token_accuracy_statistics(const Corpus& corpus, const Options& options) {
  const auto read = [&](const std::string& line) {
    return unicode::split(options.lowercase ? unicode::lowercase(line) : line);
  };
  std::vector<double> rows;
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    const Tokens hypothesis = read(corpus.hypotheses[line]);
    std::vector<Agreement> agreements;
    for (const auto& stream : corpus.references)
      agreements.push_back(agreement(hypothesis, read(stream[line])));
    const Agreement best =
        *std::max_element(agreements.begin(), agreements.end(),
                          [](const Agreement& a, const Agreement& b) { return a.share() < b.share(); });
    rows.insert(rows.end(), {best.matches, best.positions});
  }
  return {2, std::move(rows), [](std::span<const double> sums) {
            return 100 * Agreement{sums[0], sums[1]}.share();
          }};
}

Score token_accuracy(const Corpus& corpus, const Options& options) {
  const SentenceStatistics statistics = token_accuracy_statistics(corpus, options);
  const std::vector<double> sums = statistics.sums();
  return {statistics.score_of(sums),
          make_signature(corpus, {{"case", options.lowercase ? "lc" : "mixed"}, {"tok", "none"}}),
          {{"matches", sums[0]}, {"positions", sums[1]}}};
}

}  // namespace polyhead::metrics
