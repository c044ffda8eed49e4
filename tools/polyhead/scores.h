#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "polyhead/metrics/score.h"

namespace polyhead::tools {

/// Scores by the name of their metric, in the order asked for.
using Scores = std::vector<std::pair<std::string, metrics::Score>>;

/// {"bleu": {"score": ..., "signature": ..., "details": {...}}, ...} in full precision.
nlohmann::ordered_json scores_object(const Scores& scores);
/// The same as text, and a line end.
std::string scores_json(const Scores& scores);
/// A table for people: metric, score, signature.
std::string scores_table(const Scores& scores);

}  // namespace polyhead::tools
