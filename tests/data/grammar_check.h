#pragma once

#include <string>
#include <vector>

/// A second grammar of the toy language's German, independent of the generator: its own table of forms, and a parser
/// that knows agreement, case, government and order.
namespace polyhead::data::check {

/// Whether `tokens` are a sentence. With `free`, what German allows though the toy language never does it is one too:
/// subject and object change places, instruments are after objects, adverbs and phrases after the last verb, nicht is
/// before what it denies, a relative clause is of any noun of the phrase before it, at the end of any noun at all, a place is in
/// either case where the verb takes both, "der Lehrer" are many in the genitive, "dankt ihr" is said to many, a verb agrees with
/// either side of sondern, one may "wissen" somebody, and "mir ist gut". What is wrong even then cannot be right for a reader of German.
bool grammatical(const std::vector<std::string>& tokens, bool free = false);

/// m, f or n of a noun's form; 0 of what is none.
char gender(const std::string& noun);
bool is_name(const std::string& word);

}  // namespace polyhead::data::check
