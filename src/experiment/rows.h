#pragma once

#include <string>

#include "polyhead/config/node.h"

namespace polyhead::experiment {

/// `node` as JSON.
std::string json_text(const config::Node& node);

}  // namespace polyhead::experiment
