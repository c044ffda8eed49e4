#include "polyhead/train/run_folder.h"

#include <filesystem>
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

/// A line of the log, or discarded when it is not a whole one.
json parse_line(const std::string& line) { return json::parse(line, nullptr, false); }

}  // namespace

bool RunFolder::exists() const {
  return std::filesystem::exists(config()) || std::filesystem::exists(log()) ||
         !list_checkpoints(checkpoints()).empty();
}

void RunFolder::create(const std::string& config_yaml) const {
  std::error_code error;
  std::filesystem::create_directories(checkpoints(), error);
  require<FileError>(!error, checkpoints(), ": cannot make the folder: ", error.message());
  write_text(config(), config_yaml);
}

void RunFolder::cut_log(std::int64_t step) const {
  std::ifstream in(log());
  if (!in) return;  // nothing logged yet
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const json entry = parse_line(line);
    if (entry.is_object() && entry.value("step", step + 1) <= step) kept += line + "\n";
  }
  in.close();
  write_text(log(), kept);
}

std::optional<std::int64_t> RunFolder::best_step() const {
  std::ifstream in(path_ + "/best.json");
  const json best = in ? json::parse(in, nullptr, false) : json();
  if (!best.is_object() || !best.contains("step") || !best["step"].is_number_integer()) return std::nullopt;
  return best["step"].get<std::int64_t>();
}

void RunFolder::set_best_step(std::int64_t step) const {
  write_text(path_ + "/best.json", json{{"step", step}}.dump() + "\n");
}

}  // namespace polyhead::train
