#pragma once

#include "polyhead/experiment/summary.h"

namespace polyhead::experiment {

/// Whether a cell is one of the seeds of a point under a control.
bool is_of(const Cell& cell, const Point& point, Control control);

/// The value of a figure in a cell's outcome; not a number where the cell diverged or failed, or does not have it.
double value_of(const Outcome& outcome, const Figure& figure, std::optional<int> limit);

}  // namespace polyhead::experiment
