#pragma once

namespace polyhead {

/// Of the program, of the installed library and in the signatures of metrics; the same as in CMakeLists.txt.
inline constexpr const char* version = "0.1.0";

}  // namespace polyhead
