#include "polyhead/metrics/score.h"

#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"
#include "polyhead/core/version.h"

namespace polyhead::metrics {

namespace {

void require_utf8(std::span<const std::string> lines, const std::string& name) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    require<DataError>(unicode::is_valid(lines[i]), name, " line ", i + 1, " is not valid UTF-8");
}

}  // namespace

Corpus::Corpus(std::span<const std::string> lines,
               std::span<const std::vector<std::string>> reference_streams)
    : hypotheses(lines), references(reference_streams) {
  require(!references.empty(), "metrics: no reference was given, expected at least one");
  for (std::size_t r = 0; r < references.size(); ++r)
    require<DataError>(references[r].size() == hypotheses.size(), "metrics: reference ", r + 1, " has ",
                       references[r].size(), " lines, but the hypothesis has ", hypotheses.size());
  require<DataError>(!hypotheses.empty(), "metrics: the hypothesis and its references have no lines");
  require_utf8(hypotheses, "metrics: hypothesis");
  for (std::size_t r = 0; r < references.size(); ++r)
    require_utf8(references[r], concat("metrics: reference ", r + 1));
}

std::string make_signature(const Corpus& corpus,
                           const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string signature = concat("nrefs:", corpus.references.size());
  for (const auto& [key, value] : entries) signature += concat('|', key, ':', value);
  return concat(signature, "|version:polyhead-", version);
}

}  // namespace polyhead::metrics
