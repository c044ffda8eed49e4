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

Score token_accuracy(const Corpus& corpus, const Options& options) {
  const auto read = [&](const std::string& line) {
    return unicode::split(options.lowercase ? unicode::lowercase(line) : line);
  };
  Agreement sum;
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    const Tokens hypothesis = read(corpus.hypotheses[line]);
    std::vector<Agreement> agreements;
    for (const auto& stream : corpus.references)
      agreements.push_back(agreement(hypothesis, read(stream[line])));
    const Agreement best =
        *std::max_element(agreements.begin(), agreements.end(),
                          [](const Agreement& a, const Agreement& b) { return a.share() < b.share(); });
    sum.matches += best.matches;
    sum.positions += best.positions;
  }
  return {100 * sum.share(),
          make_signature(corpus, {{"case", options.lowercase ? "lc" : "mixed"}, {"tok", "none"}}),
          {{"matches", sum.matches}, {"positions", sum.positions}}};
}

}  // namespace polyhead::metrics
