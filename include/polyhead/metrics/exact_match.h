#pragma once

#include "polyhead/metrics/score.h"

namespace polyhead::metrics {

/// The percentage of lines that equal one of their references, white space at both ends aside.
/// Details: matches, lines.
Score exact_match(const Corpus& corpus, const Options& options);

}  // namespace polyhead::metrics
