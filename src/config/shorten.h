#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polyhead::config {

/// The first `length` code points of `text`, with "..." where that is not all.
std::string shortened(std::string_view text, std::size_t length);
/// The same, with control characters escaped: fit for one line of a message.
std::string one_line(std::string_view text, std::size_t length);

}  // namespace polyhead::config
