#include "polyhead/train/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "atomic_file.h"
#include "polyhead/core/error.h"
#include "polyhead/train/checkpoint.h"

namespace polyhead::train {
namespace {

using nlohmann::json;

void write_text(const std::string& path, const std::string& text) {
  replace_file(path, std::as_bytes(std::span(text)));
}

/// Whether a line of the log is whole and of an update up to `step`.
bool is_of(const std::string& line, std::int64_t step) {
  const json entry = json::parse(line, nullptr, false);
  const auto found = entry.is_object() ? entry.find("step") : entry.end();
  return found != entry.end() && found->is_number_integer() && *found <= step;
}

/// Removes the files of `folder` that replace_file() left there when the process was killed and that were to replace
/// files whose names begin with one of `names`.
void remove_temporaries(const std::string& folder, std::initializer_list<std::string_view> names) {
  std::vector<std::filesystem::path> left;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto begins = [&](std::string_view begin) { return name.starts_with(begin); };
    if (name.find(".tmp-") != std::string::npos && std::any_of(names.begin(), names.end(), begins))
      left.push_back(entry->path());
  }
  require<FileError>(!error, folder, ": cannot list: ", error.message());
  for (const std::filesystem::path& path : left) {
    std::filesystem::remove(path, error);
    require<FileError>(!error, path.string(), ": cannot remove: ", error.message());
  }
}

}  // namespace

bool RunFolder::exists() const {
  return std::filesystem::exists(config()) || std::filesystem::exists(log()) ||
         !list_checkpoints(checkpoints()).empty();
}

void RunFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(checkpoints(), error);
  require<FileError>(!error, checkpoints(), ": cannot make the folder: ", error.message());
}

void RunFolder::open(const std::string& config_yaml) const {
  remove_temporaries(path_, {"config.yaml", "train.jsonl"});
  remove_temporaries(checkpoints(), {"step-"});
  write_text(config(), config_yaml);
}

void RunFolder::cut_log(std::int64_t step) const {
  std::ifstream in(log());
  if (!in) return;  // nothing logged yet
  std::string kept;
  for (std::string line; std::getline(in, line);)
    if (is_of(line, step)) kept += line + "\n";
  in.close();
  write_text(log(), kept);
}

}  // namespace polyhead::train
