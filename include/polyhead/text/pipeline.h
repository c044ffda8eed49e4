#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyhead/text/normalizer.h"
#include "polyhead/text/tokenizer.h"

namespace polyhead::text {

/// Cuts the ids of a sentence, eos at the end, to `max_pieces` and eos. Whether they were more.
bool crop(std::vector<std::int32_t>& ids, std::int64_t max_pieces);

/// From lines of text to ids and back, for both languages: normalizer, source and target tokenizer (one and
/// the same when they are shared). Immutable and cheap to copy.
class TextPipeline {
 public:
  /// Learns the tokenizers from training lines, or loads them where `config` names models: one vocabulary of
  /// both languages when `config.shared`, else one each. Lines are valid UTF-8, as data::read_lines gives
  /// them.
  static TextPipeline learn(const TokenizerConfig& config, bool lowercase,
                            const std::vector<std::string>& source_lines,
                            const std::vector<std::string>& target_lines);

  /// Ids of a line with eos at the end; an empty line gives eos alone.
  std::vector<std::int32_t> encode_source(std::string_view line) const;
  std::vector<std::int32_t> encode_target(std::string_view line) const;
  /// Plain text of target ids, one line: line breaks, which SentencePiece models of single bytes can give, become
  /// spaces; bos and eos give nothing.
  std::string decode_target(std::span<const std::int32_t> ids) const;
  /// The pieces of target ids without bos and eos, separated by one space. Ids that do not end with eos, as of a
  /// translation cut at its length limit, get the piece of bos at the end: "<s>", which is never generated.
  std::string target_pieces(std::span<const std::int32_t> ids) const;
  /// The inverse: target ids of pieces separated by white space, with eos at the end unless the last is "<s>"; unknown
  /// pieces give unk_id.
  std::vector<std::int32_t> ids_from_pieces(std::string_view line) const;

  const Normalizer& normalizer() const { return normalizer_; }
  const Tokenizer& source() const { return *source_; }
  const Tokenizer& target() const { return *target_; }
  bool shared() const { return source_ == target_; }

  /// For storing inside a checkpoint.
  std::string serialize() const;
  /// Throws FileError when `serialized` is not exactly what serialize() wrote.
  static TextPipeline deserialize(std::string_view serialized);

 private:
  TextPipeline(Normalizer normalizer, std::shared_ptr<const Tokenizer> source,
               std::shared_ptr<const Tokenizer> target);
  Normalizer normalizer_;
  std::shared_ptr<const Tokenizer> source_, target_;
};

}  // namespace polyhead::text
