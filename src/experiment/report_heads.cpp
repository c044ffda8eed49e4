#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "json_shape.h"
#include "polyhead/core/error.h"
#include "report_parts.h"

namespace polyhead::experiment {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// What `polyhead heads ... --json` wrote beside a run, and what the page's figures need of it besides what it is of.
struct HeadFile {
  const char *member, *what, *command, *shape;
};
constexpr HeadFile head_files[] = {
    {"importance", "The importance of heads", "heads importance RUN --json", R"({
       "heads": [{"kind": "encoder, decoder or cross", "layer": "a whole number from 0 to 999",
                  "head": "a whole number from 0 to 999", "*": "a number"}],
       "rank_correlations": [{"a": "text", "b": "text", "rho": "a number", "p": "a number"}]})"},
    {"masking", "Heads masked one at a time", "heads mask RUN --json", R"({
       "method": "text",
       "sets": [{"name": "heads such as encoder.0.3",
                 "figures": {"*": {"score": "a number", "change": "a number", "q": "a number"}},
                 "phenomena?": {"*": {"*": {"change": "a number", "q": "a number"}}}}]})"},
    {"all_but_one", "All heads of a layer masked but one", "heads mask RUN --all-but-one --json", R"({
       "method": "text",
       "sets": [{"name": "all but a head such as encoder.0.3",
                 "figures": {"*": {"score": "a number", "change": "a number", "q": "a number"}}}]})"},
    {"curve", "Pruning curves", "heads curve RUN --json", R"({
       "metrics": ["text", "and more"],
       "curves": [{"scope": "text", "order": "text", "draw": "a number",
                   "points": [{"removed": "a count", "head": "text or null", "*": "a number"}]}, "and more"]})"},
    {"heads", "What heads do, and how alike they are", "heads RUN --json", R"({
       "heads": [{"kind": "encoder, decoder or cross", "layer": "a whole number from 0 to 999",
                  "head": "a whole number from 0 to 999",
                  "relations": {"*": {"tokens": "a number", "mass": "a number", "error_rate?": "a number",
                                      "baseline": {"offset": "a number", "mass": "a number",
                                                   "error_rate?": {"error_rate": "a number"}}}},
                  "diagnostics": {"positional": "true or false", "offset": "a number",
                                  "offsets": {"*": "a number"}, "*": "a number"}}],
       "warnings": [{"kind": "encoder, decoder or cross", "layer": "a count", "head": "a count", "warning": "text",
                     "figure": "text", "value": "a number", "threshold": "a number", "message": "text"}],
       "similarity": [{"kind": "encoder, decoder or cross", "layer": "a count", "jensen_shannon": [["a number"]],
                       "cka": [["a number"]], "cosine": [["a number"]]}],
       "rollout": {"*": [{"layer": "a count", "self": "a number", "relative_entropy": "a number"}]}})"},
};

/// Nothing that is written is as deep, and what is much deeper would be more than the stack holds.
constexpr int most_nested = 20;

std::string problem_of(const Json& json, const HeadFile& file) {
  const std::string of_origin = shape_problem(json, R"({"checkpoint": "text", "step": "a count"})");
  return of_origin.empty() ? shape_problem(json, file.shape) : of_origin;
}

Json read_json(const std::string& path, const HeadFile& file) {
  std::ifstream in(path, std::ios::binary);
  require<FileError>(in.is_open(), path, ": cannot be read");
  bool deep = false;
  Json json = Json::parse(
      in,
      [&](int depth, Json::parse_event_t, const Json&) {
        deep |= depth > most_nested;
        return depth <= most_nested;
      },
      false);
  const std::string problem = deep                  ? concat("it is nested more than ", most_nested, " deep")
                              : json.is_discarded() ? "it is not JSON"
                                                    : problem_of(json, file);
  require<FileError>(problem.empty(), path, ": expected what polyhead ", file.command, " writes, but ",
                     problem);
  return json;
}

/// The model that something was made of.
struct Origin {
  std::string what, checkpoint;
  std::int64_t step = 0;

  std::string text() const { return concat(checkpoint, " (update ", step, ")"); }
};

/// A folder may have been moved since: a path that leads nowhere tells a checkpoint by its name alone.
bool are_same(const Origin& a, const Origin& b) {
  const fs::path of_a = a.checkpoint, of_b = b.checkpoint;
  std::error_code none;
  return a.step == b.step &&
         (fs::exists(of_a, none) && fs::exists(of_b, none) ? fs::equivalent(of_a, of_b, none)
                                                           : of_a.filename() == of_b.filename());
}

std::string in_folder(std::string command, const std::string& folder) {
  for (std::size_t at = 0; (at = command.find("RUN", at)) != command.npos; at += folder.size())
    command.replace(at, 3, folder);
  return command;
}

}  // namespace

void add_head_files(Json& report, const std::string& folder, const train::LoadedModel* loaded) {
  std::optional<Origin> first;
  if (loaded != nullptr) first = {"the page", loaded->path, loaded->step};
  for (const HeadFile& file : head_files) {
    const std::string path = concat(folder, "/", file.member, ".json");
    if (!fs::exists(path)) {
      add_missing(report, file.what,
                  in_folder(concat(file.command, " > RUN/", file.member, ".json"), folder));
      continue;
    }
    Json json = read_json(path, file);
    const Origin origin{path, json["checkpoint"], json["step"]};
    if (!first) first = origin;
    if (!are_same(*first, origin))
      report["warnings"].push_back(
          concat(path, " is of ", origin.text(), ", ", first->what, " of ", first->text()));
    report["heads"][file.member] = std::move(json);
  }
}

}  // namespace polyhead::experiment
