#pragma once

#include <string_view>

namespace polyhead::text {

/// Throws FileError unless the tables by which a SentencePiece model replaces characters (precompiled_charsmap of its
/// normalizers) lead nowhere outside of themselves: the library follows them without looking.
void check_character_maps(std::string_view model);

}  // namespace polyhead::text
