#pragma once

#include <string>
#include <vector>

namespace polyhead::config {

/// The known path closest to the unknown `path`, both dotted: by the edit distance of their last names, those
/// of another section being further off. Empty when none is near: within a third of the name's length.
std::string nearest(const std::string& path, const std::vector<std::string>& known);

}  // namespace polyhead::config
