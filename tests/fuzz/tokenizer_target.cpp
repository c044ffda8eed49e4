#include <algorithm>
#include <string>
#include <vector>

#include "polyhead/core/error.h"
#include "polyhead/data/lines.h"
#include "polyhead/text/pipeline.h"
#include "targets.h"
#include "text/frame.h"

namespace polyhead::fuzz {
namespace {

constexpr std::string_view kinds[] = {"word", "char", "sentencepiece"};

void check_ids(const text::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  for (const std::int32_t id : ids)
    expect(id >= 0 && id < tokenizer.size() && id != text::bos_id && id != text::eos_id,
           "text gives an id that it cannot");
  tokenizer.decode(ids);
}

/// U+2581 stands for the space and comes back as one.
std::string with_spaces(std::string line) {
  for (std::size_t at = 0; (at = line.find("\u2581", at)) != std::string::npos;) line.replace(at, 3, " ");
  return line;
}

void learn(std::string_view kind, const std::vector<std::string>& lines) {
  text::TokenizerConfig config;
  config.kind = kind;
  config.vocab_size = 40;
  const auto pipeline = text::TextPipeline::learn(config, false, lines, lines);
  const auto copy = text::TextPipeline::deserialize(pipeline.serialize());
  for (const std::string& line : lines) {
    const std::string normal = pipeline.normalizer()(line);
    const text::Tokenizer& tokenizer = pipeline.source();
    const std::string back = tokenizer.detokenize(tokenizer.pieces(normal));
    expect(kind == "char" ? back == with_spaces(normal) : back == normal,
           "a line does not come back from its pieces");
    check_ids(tokenizer, tokenizer.encode(normal));
    expect(copy.encode_source(line) == pipeline.encode_source(line), "a stored tokenizer gives other ids");
    pipeline.decode_target(pipeline.encode_target(line));
    pipeline.ids_from_pieces(line);
  }
}

void load(std::string_view kind, std::string_view input) {
  if (input.size() < 2) return;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(input[i]));
  };
  const std::string_view rest = input.substr(2), bytes = rest.substr(0, byte(0) + 256 * byte(1));
  const std::string stored =
      text::frame("polyhead tokenizer 1\n", text::counted(kind) + text::counted(bytes));
  const auto tokenizer = text::Tokenizer::deserialize(stored);
  expect(tokenizer->serialize() == stored, "a tokenizer stores other bytes than it was made of");
  for (const std::string& line : data::split_lines(rest.substr(bytes.size())).lines)
    check_ids(*tokenizer, tokenizer->encode(text::Normalizer{}(line)));
  std::vector<std::int32_t> all(static_cast<std::size_t>(tokenizer->size()));
  for (std::size_t id = 0; id < all.size(); ++id) all[id] = static_cast<std::int32_t>(id);
  tokenizer->decode(all);
}

}  // namespace

void tokenizer(std::string_view input) {
  if (input.empty()) return;
  const auto what = static_cast<unsigned char>(input[0]);
  try {
    if (what % 2 == 0)
      learn(kinds[what / 2 % 2], data::split_lines(input.substr(1)).lines);
    else
      load(kinds[what / 2 % 3], input.substr(1));
  } catch (const Error& error) {
    expect(error.status() == Status::data || error.status() == Status::file, "an error of another kind");
  }
}

}  // namespace polyhead::fuzz
