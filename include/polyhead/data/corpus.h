#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "polyhead/data/config.h"
#include "polyhead/text/pipeline.h"

namespace polyhead::data {

enum class Split { train, valid, test };
std::string_view name(Split split);

/// Lines of text and their translations: source.size() == target.size().
struct ParallelText {
  std::string name;
  std::vector<std::string> source, target;
  /// Lines of either side that held invalid UTF-8.
  std::int64_t repaired = 0;
};

/// Reads two files. Throws DataError when one cannot be read or their numbers of lines differ.
ParallelText read_parallel(const FilePair& files);
/// One split of `config`: its files, or the toy task's sentences (data/tasks.h), a function of `seed`.
/// Throws Error when the configuration names no files for the split.
ParallelText load_text(const DataConfig& config, Split split, std::uint64_t seed);
/// Whether `config` has that split: toy tasks have them all.
bool has_split(const DataConfig& config, Split split);

/// Which sentence pairs to keep.
struct Filter {
  /// Drop pairs with a side without pieces.
  bool skip_empty = true;
  /// Drop pairs with a side of more pieces than this, end token not counted; 0: none.
  int max_length = 0;
};

/// What became of the lines of a corpus.
struct CorpusReport {
  std::int64_t read = 0, kept = 0, empty = 0, too_long = 0;
  std::int64_t repaired = 0;
  /// One line: "train: 29000 pairs, 28990 kept, 4 empty, 6 longer than 250 pieces"; zero counts are left out.
  std::string summary(const std::string& name, const Filter& filter) const;
};

/// The ids of many sentences end to end.
class Sequences {
 public:
  void add(std::span<const std::int32_t> ids);
  std::int64_t size() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  std::int32_t length(std::int64_t i) const {
    return static_cast<std::int32_t>(offsets_[static_cast<std::size_t>(i) + 1] -
                                     offsets_[static_cast<std::size_t>(i)]);
  }
  std::span<const std::int32_t> operator[](std::int64_t i) const {
    return {ids_.data() + offsets_[static_cast<std::size_t>(i)], static_cast<std::size_t>(length(i))};
  }
  /// Ids of all sentences together.
  std::int64_t total() const { return offsets_.back(); }

 private:
  std::vector<std::int32_t> ids_;
  std::vector<std::int64_t> offsets_{0};
};

/// Encoded sentence pairs; every sentence of either side ends with eos.
class ParallelCorpus {
 public:
  /// Encodes `text`. Throws DataError when no pair is left.
  static ParallelCorpus encode(const ParallelText& text, const text::TextPipeline& pipeline,
                               const Filter& filter);

  std::int32_t size() const { return static_cast<std::int32_t>(source_.size()); }
  std::span<const std::int32_t> source(std::int32_t i) const { return source_[i]; }
  std::span<const std::int32_t> target(std::int32_t i) const { return target_[i]; }
  std::int32_t source_length(std::int32_t i) const { return source_.length(i); }
  std::int32_t target_length(std::int32_t i) const { return target_.length(i); }
  std::int64_t target_tokens() const { return target_.total(); }
  const CorpusReport& report() const { return report_; }

 private:
  Sequences source_, target_;
  CorpusReport report_;
};

}  // namespace polyhead::data
