#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "polyhead/experiment/summary.h"

namespace polyhead::experiment {

nlohmann::ordered_json grid_json(const Point& point);

/// The lines of summary_jsonl(): what a report says of points, too.
nlohmann::ordered_json points_json(const std::vector<Group>& groups);

}  // namespace polyhead::experiment
