#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyhead::metrics {

/// Cuts a line into the tokens that BLEU counts.
using Tokenizer = std::vector<std::string> (*)(std::string_view line);

/// Splits at white space.
std::vector<std::string> tokenize_none(std::string_view line);
/// Every character but white space is a token.
std::vector<std::string> tokenize_char(std::string_view line);
/// The tokenization of NIST's mteval-v13a.pl: XML entities are resolved, `<skipped>` is dropped, ASCII
/// symbols stand alone, and periods, commas and dashes are cut off unless digits surround them.
std::vector<std::string> tokenize_13a(std::string_view line);

/// The names that find_tokenizer() knows: 13a, none, char.
std::vector<std::string> tokenizer_names();
/// Throws Error for a name that is not in tokenizer_names().
Tokenizer find_tokenizer(const std::string& name);

}  // namespace polyhead::metrics
