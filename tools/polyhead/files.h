#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "polyhead/data/lines.h"

/// Files and streams as the commands take them, and what they say on stderr.
namespace polyhead::tools {

/// Whoever reads stdout has gone: ends the program without a message.
struct ReaderGone {};

/// The lines of a file, or of stdin when `path` is empty, read whole. A line on stderr says when some held invalid UTF-8.
/// Throws DataError when they cannot be read.
data::Lines read_input(const std::string& path);

/// The lines of a file that goes with another line by line. Throws DataError when they are not `lines`, as those of the
/// file `beside` are.
std::vector<std::string> read_beside(const std::string& path, const std::string& beside, std::size_t lines);

/// Writes a file, or to stdout when `path` is empty. Throws FileError when not all could be written, ReaderGone when
/// stdout is a pipe that nobody reads any more.
void write_output(const std::string& path, std::string_view text);

/// A message on stderr, each of its lines after the program's name.
void complain(std::string_view message);

/// The shortest text that reads back as the same number.
std::string number_text(double value);

}  // namespace polyhead::tools
