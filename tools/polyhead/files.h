#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "polyhead/data/lines.h"

/// Files and streams as the commands take them, and what they say on stderr.
namespace polyhead::tools {

/// Takes the descriptors of standard streams that the program was started without, so that no file gets them and then what
/// is meant for stdout or stderr: using stdin or stdout is an error then. To be called first.
void hold_standard_streams();

/// Whoever reads stdout has gone: ends the program without a message.
struct ReaderGone {};

/// The lines of a file, or of stdin when `path` is empty, read whole. A line on stderr says when some held invalid UTF-8.
/// Throws DataError when they cannot be read.
data::Lines read_input(const std::string& path);

/// The lines of a file that goes with another line by line. Throws DataError when they are not `lines`, as those of the
/// file `beside` are.
std::vector<std::string> read_beside(const std::string& path, const std::string& beside, std::size_t lines);

/// Replaces a file, which stays as it was when that fails (see replace_file), or writes to stdout when `path` is empty, or to
/// what is no file, as /dev/null. Throws FileError when not all could be written, ReaderGone when that is a pipe which nobody
/// reads any more.
void write_output(const std::string& path, std::string_view text);

/// Throws FileError where there is something at `path` already, which `option` names: a checkpoint or a configuration is not
/// made again as fast as it is replaced.
void require_new(const std::string& path, std::string_view option);

/// A message on stderr, each of its lines after the program's name.
void complain(std::string_view message);

/// The shortest text that reads back as the same number.
std::string number_text(double value);

}  // namespace polyhead::tools
