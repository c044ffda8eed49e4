#pragma once

#include "polyhead/metrics/score.h"
#include "polyhead/metrics/sentence_statistics.h"

namespace polyhead::metrics {

/// The percentage of lines that equal one of their references, white space at both ends aside.
/// Details: matches, lines.
Score exact_match(const Corpus& corpus, const Options& options);
/// Of each line whether it matches.
SentenceStatistics exact_match_statistics(const Corpus& corpus, const Options& options);

}  // namespace polyhead::metrics
