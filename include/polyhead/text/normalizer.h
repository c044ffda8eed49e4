#pragma once

#include <string>
#include <string_view>

#include "polyhead/text/config.h"

namespace polyhead::text {

/// What every line goes through before it is tokenized: Unicode normalisation, lower-casing (followed by
/// normalisation again, because lower-casing can undo it), and white space: every run of unicode::is_space()
/// becomes one U+0020, none is left at the ends. Takes valid UTF-8.
struct Normalizer {
  Normalization normalization = Normalization::none;
  bool lowercase = false;
  std::string operator()(std::string_view line) const;
  friend bool operator==(const Normalizer&, const Normalizer&) = default;
};

}  // namespace polyhead::text
