#include "polyhead/text/pipeline.h"

#include <algorithm>

#include "frame.h"
#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"

namespace polyhead::text {
namespace {

constexpr std::string_view pipeline_tag = "polyhead text 1\n";

void append_normalized(const Normalizer& normalizer, const std::vector<std::string>& lines,
                       std::vector<std::string>& result) {
  result.reserve(result.size() + lines.size());
  for (const std::string& line : lines) result.push_back(normalizer(line));
}

std::vector<std::int32_t> with_eos(std::vector<std::int32_t> ids) {
  ids.push_back(eos_id);
  return ids;
}

}  // namespace

bool crop(std::vector<std::int32_t>& ids, std::int64_t max_pieces) {
  const auto longest = static_cast<std::size_t>(max_pieces) + 1;
  if (ids.size() <= longest) return false;
  ids.resize(longest);
  ids.back() = eos_id;
  return true;
}

TextPipeline::TextPipeline(Normalizer normalizer, std::shared_ptr<const Tokenizer> source,
                           std::shared_ptr<const Tokenizer> target)
    : normalizer_(normalizer), source_(std::move(source)), target_(std::move(target)) {}

TextPipeline TextPipeline::learn(const TokenizerConfig& config, bool lowercase,
                                 const std::vector<std::string>& source_lines,
                                 const std::vector<std::string>& target_lines) {
  const Normalizer normalizer{config.normalization, lowercase};
  const auto tokenizer = [&](const std::string& path, auto... sides) -> std::shared_ptr<const Tokenizer> {
    if (!path.empty()) return load_sentencepiece(path);
    std::vector<std::string> lines;
    (append_normalized(normalizer, *sides, lines), ...);
    return learn_tokenizer(config, lines);
  };
  if (config.shared) {
    const auto both = tokenizer(config.model, &source_lines, &target_lines);
    return {normalizer, both, both};
  }
  return {normalizer, tokenizer(config.source_model, &source_lines),
          tokenizer(config.target_model, &target_lines)};
}

std::vector<std::int32_t> TextPipeline::encode_source(std::string_view line) const {
  return with_eos(source_->encode(normalizer_(line)));
}

std::vector<std::int32_t> TextPipeline::encode_target(std::string_view line) const {
  return with_eos(target_->encode(normalizer_(line)));
}

std::string TextPipeline::decode_target(std::span<const std::int32_t> ids) const {
  std::string line = target_->decode(ids);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::string TextPipeline::target_pieces(std::span<const std::int32_t> ids) const {
  std::vector<std::string> pieces = target_->pieces_of(ids);
  if (!ids.empty() && ids.back() != eos_id) pieces.emplace_back(special_pieces[bos_id]);
  std::string line;
  for (const std::string& piece : pieces) line += (line.empty() ? "" : " ") + piece;
  return line;
}

std::vector<std::int32_t> TextPipeline::ids_from_pieces(std::string_view line) const {
  std::vector<std::string> pieces = unicode::split(line);
  const bool cut = pieces.size() > 1 && pieces.back() == special_pieces[bos_id];
  if (cut) pieces.pop_back();
  std::vector<std::int32_t> ids;
  for (const std::string& piece : pieces) ids.push_back(target_->vocabulary().id(piece));
  return cut ? ids : with_eos(std::move(ids));
}

std::string TextPipeline::serialize() const {
  std::string payload = number(static_cast<std::uint64_t>(normalizer_.normalization));
  payload += number(normalizer_.lowercase ? 1 : 0);
  payload += counted(source_->serialize());
  if (!shared()) payload += counted(target_->serialize());
  return frame(pipeline_tag, payload);
}

TextPipeline TextPipeline::deserialize(std::string_view serialized) {
  Reader reader(unframe(pipeline_tag, serialized));
  const std::uint64_t form = reader.number();
  require<FileError>(form <= static_cast<std::uint64_t>(Normalization::nfkc),
                     "stored vocabulary: unknown normalisation ", form);
  const Normalizer normalizer{static_cast<Normalization>(form), reader.number() != 0};
  const std::shared_ptr<const Tokenizer> source = Tokenizer::deserialize(reader.text());
  if (reader.done()) return {normalizer, source, source};
  const std::shared_ptr<const Tokenizer> target = Tokenizer::deserialize(reader.text());
  require<FileError>(reader.done(), "stored vocabulary: bytes after its end");
  return {normalizer, source, target};
}

}  // namespace polyhead::text
