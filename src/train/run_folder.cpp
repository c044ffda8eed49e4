#include "polyhead/train/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
#include "polyhead/train/checkpoint.h"

namespace polyhead::train {
namespace {

using nlohmann::json;

/// Whether a line of the log is whole and of an update up to `step`.
bool is_of(std::string_view line, std::int64_t step) {
  const json entry = json::parse(line, nullptr, false);
  const auto found = entry.is_object() ? entry.find("step") : entry.end();
  return found != entry.end() && found->is_number_integer() && *found <= step;
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
  constexpr std::string_view in_folder[]{"config.yaml", "train.jsonl"}, in_checkpoints[]{"step-"};
  remove_temporaries(path_, in_folder);
  remove_temporaries(checkpoints(), in_checkpoints);
  replace_file(config(), config_yaml);
}

void RunFolder::cut_log(std::int64_t step) const {
  if (!std::filesystem::exists(log())) return;  // nothing logged yet
  const std::vector<std::byte> bytes = read_file(log());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string kept;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (is_of(line, step)) kept.append(line).append("\n");
  }
  if (kept != text) replace_file(log(), kept);
}

}  // namespace polyhead::train
