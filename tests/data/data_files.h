#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "polyhead/data/corpus.h"
#include "support/message.h"

namespace polyhead::data {

using testing::message_of;

/// A file of given bytes that lasts as long as the object.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& bytes)
      : path_(std::filesystem::path(::testing::TempDir()) / (std::to_string(getpid()) + "_" + name)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_; }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path path_;
};

/// A corpus of words whose sentences have the given numbers of pieces, the end token not counted.
inline ParallelCorpus corpus_of_lengths(const std::vector<std::pair<int, int>>& lengths) {
  const auto line = [](int length) {
    std::string result;
    for (int i = 0; i < length; ++i) result += " w" + std::to_string(i % 5);
    return result;
  };
  ParallelText text;
  for (const auto& [source, target] : lengths) {
    text.source.push_back(line(source));
    text.target.push_back(line(target));
  }
  text::TokenizerConfig config;
  config.kind = "word";
  const auto pipeline = text::TextPipeline::learn(config, false, text.source, text.target);
  return ParallelCorpus::encode(text, pipeline, {.skip_empty = false});
}

}  // namespace polyhead::data
