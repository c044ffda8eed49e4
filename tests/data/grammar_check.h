#pragma once

#include <string>
#include <vector>

/// A second grammar of the toy language's German, independent of the generator: its own table of forms, and a parser
/// that knows agreement, case, government and order.
namespace polyhead::data::check {

/// Whether `tokens` are a sentence. With `free_order`, subject and object of a clause may change places, as German
/// allows, though the toy language never does: what is wrong even then cannot be right for a reader of German.
bool grammatical(const std::vector<std::string>& tokens, bool free_order = false);

/// m, f or n of a noun's form; 0 of what is none.
char gender(const std::string& noun);
bool is_name(const std::string& word);

}  // namespace polyhead::data::check
