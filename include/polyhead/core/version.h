#pragma once

namespace polyhead {

inline constexpr const char* version = "0.1.0";

}  // namespace polyhead
