#include "polyhead/metrics/exact_match.h"

#include <algorithm>

#include "polyhead/core/unicode.h"

namespace polyhead::metrics {

Score exact_match(const Corpus& corpus, const Options& options) {
  const auto read = [&](const std::string& line) {
    return unicode::strip(options.lowercase ? unicode::lowercase(line) : line);
  };
  double matches = 0;
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    const std::string hypothesis = read(corpus.hypotheses[line]);
    const bool equal = std::any_of(corpus.references.begin(), corpus.references.end(),
                                   [&](const auto& stream) { return read(stream[line]) == hypothesis; });
    if (equal) ++matches;
  }
  const auto lines = static_cast<double>(corpus.size());
  return {100 * matches / lines,
          make_signature(corpus, {{"case", options.lowercase ? "lc" : "mixed"}}),
          {{"matches", matches}, {"lines", lines}}};
}

}  // namespace polyhead::metrics
