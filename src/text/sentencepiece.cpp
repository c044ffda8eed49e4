#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <unordered_map>

#include "character_map.h"
#include "kinds.h"
#include "polyhead/core/error.h"

namespace polyhead::text {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

/// Throws FileError unless `bytes` is a model whose special ids are ours; `name` says where it came from.
std::unique_ptr<Processor> parse(std::string_view bytes, const std::string& name) {
  try {
    check_character_maps(bytes);
  } catch (const FileError& error) {
    throw FileError(concat(name, ": not a SentencePiece model (", error.what(), ")"));
  }
  auto processor = std::make_unique<Processor>();
  const auto status = processor->LoadFromSerializedProto({bytes.data(), bytes.size()});
  require<FileError>(status.ok(), name, ": not a SentencePiece model (", status.message(), ")");
  require<DataError>(
      processor->unk_id() == unk_id && processor->bos_id() == bos_id && processor->eos_id() == eos_id, name,
      ": the ids of unk, bos and eos are ", processor->unk_id(), ", ", processor->bos_id(), " and ",
      processor->eos_id(), "; expected ", unk_id, ", ", bos_id, " and ", eos_id);
  return processor;
}

Vocabulary vocabulary_of(const Processor& processor) {
  std::vector<std::string> ordinary;
  for (int id = special_ids; id < processor.GetPieceSize(); ++id) ordinary.push_back(processor.IdToPiece(id));
  return Vocabulary(ordinary);
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<Processor> processor, std::string model)
      : Tokenizer(vocabulary_of(*processor)), processor_(std::move(processor)), model_(std::move(model)) {}
  std::string_view kind() const override { return "sentencepiece"; }
  std::vector<std::string> pieces(std::string_view text) const override {
    std::vector<std::string> result;
    check(processor_->Encode({text.data(), text.size()}, &result));
    return result;
  }
  std::string detokenize(const std::vector<std::string>& pieces) const override {
    std::string text;
    check(processor_->Decode(pieces, &text));
    return text;
  }
  std::string bytes() const override { return model_; }

 private:
  static void check(const sentencepiece::util::Status& status) {
    require<DataError>(status.ok(), "SentencePiece: ", status.message());
  }
  std::unique_ptr<Processor> processor_;
  std::string model_;
};

/// What of `rest`, which is not empty, is learned from in one piece: up to a space where there is one.
std::string_view first_part(std::string_view rest) {
  int length = 0;
  std::size_t space = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const bool begins_code_point = (rest[i] & 0xC0) != 0x80;
    if (begins_code_point && ++length > longest_learned_line) return rest.substr(0, space > 0 ? space : i);
    if (rest[i] == ' ') space = i;
  }
  return rest;
}

/// The parts of all lines one after the other; the empty line is none.
class Parts final : public sentencepiece::SentenceIterator {
 public:
  explicit Parts(const std::vector<std::string>& lines) : lines_(lines), line_(lines.begin()) { Next(); }
  bool done() const override { return part_.empty(); }
  void Next() override {
    for (; rest_.empty() && line_ != lines_.end(); ++line_) rest_ = *line_;
    part_ = rest_.empty() ? "" : first_part(rest_);
    rest_.remove_prefix(part_.size());
  }
  const std::string& value() const override { return part_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  std::vector<std::string>::const_iterator line_;
  std::string_view rest_;
  std::string part_;
};

/// The number that follows `words` in the library's message.
std::optional<int> number_after(std::string_view message, std::string_view words) {
  const std::size_t at = message.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = message.data() + at + words.size();
  int value = 0;
  const auto result = std::from_chars(begin, message.data() + message.size(), value);
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

[[noreturn]] void explain(std::string_view message, int vocab_size) {
  if (const auto most = number_after(message, "to a value <= ")) {
    throw DataError(concat("tokenizer.vocab_size: ", vocab_size,
                           " is more pieces than the training text gives; at most ", *most));
  }
  if (const auto least = number_after(message, " vs ")) {
    throw DataError(concat("tokenizer.vocab_size: ", vocab_size,
                           " is less than the characters of the training text; at least ", *least));
  }
  throw DataError(concat("SentencePiece cannot learn ", vocab_size, " pieces: ", message));
}

}  // namespace

std::unique_ptr<Tokenizer> learn_sentencepiece(const TokenizerConfig& config,
                                               const std::vector<std::string>& lines) {
  require<DataError>(std::any_of(lines.begin(), lines.end(), [](const auto& line) { return !line.empty(); }),
                     "tokenizer: no text to learn a vocabulary from (", lines.size(), " lines)");
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", config.model_type == ModelType::bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(config.vocab_size)},
      {"character_coverage", "1.0"},
      // Lines come from the Normalizer.
      {"normalization_rule_name", "identity"},
      // The library leaves out longer ones.
      {"max_sentence_length", "1000000000"},
      // Fixed, because sums over the text depend on it in their last bits.
      {"num_threads", "4"},
      // Fatal messages only; errors come back as a status.
      {"minloglevel", "3"},
  };
  Parts iterator(lines);
  std::string model;
  // Without a model_prefix and with `model` the library writes no files, and no prefix gets into the model.
  const auto status = [&] {
    try {
      return sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model);
    } catch (const std::system_error& error) {
      throw std::runtime_error(
          concat("cannot start the threads that learn a vocabulary: ", error.code().message()));
    }
  }();
  if (!status.ok()) explain(status.message(), config.vocab_size);
  return parse_sentencepiece(model);
}

std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view bytes) {
  return std::make_unique<SentencePieceTokenizer>(parse(bytes, "stored vocabulary"), std::string(bytes));
}

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path) {
  constexpr std::size_t most = std::size_t{64} << 20;
  std::error_code none;  // reading says what is wrong
  const auto status = std::filesystem::status(path, none);
  // Devices and pipes may never end, and opening a pipe that nobody writes to waits for ever.
  require<FileError>(!std::filesystem::is_other(status), "tokenizer model \"", path,
                     "\": not a regular file");
  std::ifstream file(path, std::ios::binary);
  const auto size = std::filesystem::is_regular_file(status) ? std::filesystem::file_size(path) : 0;
  std::string bytes(std::min<std::size_t>(size, most + 1), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  require<FileError>(file.good() && !bytes.empty(), "tokenizer model \"", path,
                     "\": cannot be read or is empty");
  require<FileError>(bytes.size() <= most, "tokenizer model \"", path, "\": larger than ", most, " bytes");
  auto processor = parse(bytes, path);
  return std::make_unique<SentencePieceTokenizer>(std::move(processor), std::move(bytes));
}

}  // namespace polyhead::text
