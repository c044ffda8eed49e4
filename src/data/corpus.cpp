#include "polyhead/data/corpus.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "polyhead/core/error.h"
#include "polyhead/data/lines.h"
#include "polyhead/data/tasks.h"

namespace polyhead::data {
namespace {

const FilePair& files_of(const DataConfig& config, Split split) {
  switch (split) {
    case Split::train:
      return config.train;
    case Split::valid:
      return config.valid;
    case Split::test:
      break;
  }
  return config.test;
}

/// A configuration is used again, when its run is resumed or compared, but a pipe is read once; and opening one that nobody
/// writes to waits for ever.
void require_file(const std::string& path) {
  std::error_code none;  // reading says what is wrong
  require<DataError>(!std::filesystem::is_other(std::filesystem::status(path, none)), "data file ", path,
                     ": not a regular file");
}

}  // namespace

std::string_view name(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      break;
  }
  return "test";
}

ParallelText read_parallel(const FilePair& files) {
  require_file(files.source);
  require_file(files.target);
  Lines source = read_lines(files.source);
  Lines target = read_lines(files.target);
  require<DataError>(source.lines.size() == target.lines.size(), files.source, " has ", source.lines.size(),
                     " lines, but ", files.target, " has ", target.lines.size());
  return {files.source + " and " + files.target, std::move(source.lines), std::move(target.lines),
          source.repaired + target.repaired};
}

bool has_split(const DataConfig& config, Split split) {
  return config.task != "files" || !files_of(config, split).source.empty();
}

ParallelText load_text(const DataConfig& config, Split split, std::uint64_t seed) {
  if (config.task != "files") return generate(config, split, seed);
  require(has_split(config, split), "data.", name(split), ": no files are given");
  return read_parallel(files_of(config, split));
}

std::string CorpusReport::summary(const std::string& title, const Filter& filter) const {
  std::string line = concat(title, ": ", read, " pairs, ", kept, " kept");
  if (empty > 0) line += concat(", ", empty, " empty");
  if (too_long > 0) line += concat(", ", too_long, " longer than ", filter.max_length, " pieces");
  if (repaired > 0) line += concat(", ", repaired, " lines with invalid UTF-8 repaired");
  return line;
}

void Sequences::add(std::span<const std::int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  offsets_.push_back(static_cast<std::int64_t>(ids_.size()));
}

ParallelCorpus ParallelCorpus::encode(const ParallelText& text, const text::TextPipeline& pipeline,
                                      const Filter& filter) {
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
  require<DataError>(text.source.size() <= most, text.name, ": ", text.source.size(), " pairs; at most ",
                     most);
  ParallelCorpus corpus;
  corpus.report_.read = static_cast<std::int64_t>(text.source.size());
  corpus.report_.repaired = text.repaired;
  const std::size_t longest = filter.max_length > 0 ? static_cast<std::size_t>(filter.max_length) + 1 : most;
  for (std::size_t i = 0; i < text.source.size(); ++i) {
    const auto source = pipeline.encode_source(text.source[i]);
    const auto target = pipeline.encode_target(text.target[i]);
    if (filter.skip_empty && std::min(source.size(), target.size()) == 1) {
      ++corpus.report_.empty;
    } else if (std::max(source.size(), target.size()) > longest) {
      ++corpus.report_.too_long;
    } else {
      corpus.source_.add(source);
      corpus.target_.add(target);
    }
  }
  corpus.report_.kept = corpus.size();
  require<DataError>(corpus.size() > 0, "no usable sentence pair in ",
                     corpus.report_.summary(text.name, filter));
  return corpus;
}

}  // namespace polyhead::data
