#pragma once

#include <string>
#include <string_view>

/// One page of HTML that shows what is known about an experiment, a run or a checkpoint, and needs nothing but itself.
namespace polyhead::experiment {

/// What a page shows, as JSON text (ARCHITECTURE.md lists its members). `path` is the folder of an experiment, that of a
/// run, or a checkpoint. What a folder lacks is left out and named in `missing` with the command that makes it. Attention
/// and bootstrap intervals are computed by `threads`, on which nothing depends.
/// Throws FileError when `path` is none of the three or a file in it cannot be read, naming file and line, and
/// NumbersError when a model's attention weights are not finite.
std::string report_data(const std::string& path, int threads);

/// The page around the data: no character of it can end the script element that it stands in.
std::string report_page(std::string_view data);

}  // namespace polyhead::experiment
