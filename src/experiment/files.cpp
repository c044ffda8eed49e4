#include "polyhead/experiment/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
#include "polyhead/core/rng.h"
#include "polyhead/data/corpus.h"
#include "polyhead/text/tokenizer.h"
#include "polyhead/train/model_file.h"

namespace polyhead::experiment {
namespace {

/// Tries every file, or pair of files, once.
class FileCheck {
 public:
  void cell(const Cell& cell, const std::vector<std::string>& splits) {
    const train::Config& config = cell.config;
    if (config.data.task == "files") {
      pair(config.data.train);
      pair(config.data.valid);
      if (std::find(splits.begin(), splits.end(), "test") != splits.end()) pair(config.data.test);
    }
    const text::TokenizerConfig& tokenizer = config.tokenizer;
    for (const std::string& model : {tokenizer.model, tokenizer.source_model, tokenizer.target_model})
      if (!model.empty()) attempt(model, [&] { text::load_sentencepiece(model); });
    if (const auto& from = config.training.initial_checkpoint)
      attempt(*from, [&] { train::open_checkpoint(*from); });
  }
  void raise() const {
    if (!found_.empty()) throw Error(found_, status_);
  }

 private:
  void pair(const data::FilePair& files) {
    if (files.source.empty()) return;
    attempt(files.source + '\n' + files.target, [&] {
      require<DataError>(!data::read_parallel(files).source.empty(), "data file ", files.source,
                         ": no lines, expected a sentence a line");
    });
  }

  template <class Read>
  void attempt(const std::string& name, const Read& read) {
    if (!tried_.insert(name).second) return;
    try {
      read();
    } catch (const Error& error) {
      if (found_.empty()) status_ = error.status();
      if (told_.insert(error.what()).second) found_ += concat(found_.empty() ? "" : "\n", error.what());
    }
  }

  std::set<std::string> tried_, told_;
  std::string found_;
  polyhead::Status status_{};
};

/// Null where the file cannot be read.
std::optional<std::string> digest_of(const std::string& path) try {
  const std::vector<std::byte> bytes = read_file(path);
  return fmt::format("{:016x}", hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

Digests digests_of(const Plan& plan, const Digests& known) {
  Digests digests;
  std::set<std::string> tried;
  for (const Cell& cell : plan.cells)
    for (const auto& [key, path] : data_files(cell.config)) {
      if (!tried.insert(path).second) continue;
      if (const std::optional<std::string> digest = digest_of(path))
        digests.of[path] = *digest;
      else if (const auto found = known.of.find(path); found != known.of.end())
        digests.of[path] = found->second;
    }
  return digests;
}

void check_files(const Plan& plan, const Results& results, const EvaluationPlan& evaluation) {
  FileCheck check;
  for (const Cell& cell : plan.cells)
    if (!results.is_complete(cell, evaluation)) check.cell(cell, results.missing_splits(cell, evaluation));
  check.raise();
}

}  // namespace polyhead::experiment
