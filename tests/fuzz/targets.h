#pragma once

#include <stdexcept>
#include <string_view>

/// What untrusted input meets, as functions of bytes: libFuzzer runs them on ever new ones (driver.cpp), a test on those in
/// corpus/ (replay_test.cpp). An Error is an answer; anything else that is thrown, and any crash, is a bug.
namespace polyhead::fuzz {

/// A checkpoint's content after its header, which is always right: loaded as a model.
void checkpoint(std::string_view input);
/// A configuration in YAML; after a NUL, `key=value` that override it.
void configuration(std::string_view input);
/// An experiment file; after a NUL, its results.jsonl.
void experiment(std::string_view input);
/// A file of text, plain or gzip.
void lines(std::string_view input);
/// A byte that says what follows. Even: text to learn a tokenizer from. Odd: the size of a stored tokenizer in two bytes,
/// the tokenizer, and text for it.
void tokenizer(std::string_view input);
/// A byte of options, then lines that are in turn hypothesis and reference.
void metrics(std::string_view input);

/// Throws unless what is always true is.
inline void expect(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace polyhead::fuzz
