#pragma once

#include <string>
#include <string_view>

namespace polyhead::config {

/// Whether `text` would be taken for a number: digits after an optional sign or point.
bool looks_like_number(std::string_view text);
/// The shortest decimal text that reads back as `value`, a number to every version of YAML; integers in full.
std::string number_text(double value);

}  // namespace polyhead::config
