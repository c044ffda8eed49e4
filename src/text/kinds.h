#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/text/tokenizer.h"

/// The functions behind tokenizer_kinds(), each beside its class.
namespace polyhead::text {

/// What stands for the space in pieces: U+2581.
inline constexpr std::string_view space_piece = "\u2581";

/// Code points of a line that SentencePiece learns from in one piece; longer ones are cut, at a space where there is one.
/// What two lines have in common takes unigram time in proportion to the square of its length, and a word of 65536 ends the
/// program when it learns bpe. No piece has more than 16.
inline constexpr int longest_learned_line = 1000;

std::unique_ptr<Tokenizer> learn_word(const TokenizerConfig& config, const std::vector<std::string>& lines);
std::unique_ptr<Tokenizer> load_word(std::string_view bytes);
std::unique_ptr<Tokenizer> learn_char(const TokenizerConfig& config, const std::vector<std::string>& lines);
std::unique_ptr<Tokenizer> load_char(std::string_view bytes);
std::unique_ptr<Tokenizer> learn_sentencepiece(const TokenizerConfig& config,
                                               const std::vector<std::string>& lines);
std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view bytes);

}  // namespace polyhead::text
