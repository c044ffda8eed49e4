#pragma once

#include <vector>

#include "polyhead/metrics/confidence.h"

namespace polyhead::metrics {

/// `score` with the interval from the 2.5th to the 97.5th percentile of its draws, at least one.
Estimate percentile_interval(double score, std::vector<double> draws);

}  // namespace polyhead::metrics
