#include "scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace polyhead::tools {

nlohmann::ordered_json scores_object(const Scores& scores) {
  using Json = nlohmann::ordered_json;
  Json report = Json::object();
  for (const auto& [name, score] : scores) {
    report[name] = Json{{"score", score.score}, {"signature", score.signature}};
    for (const auto& [detail, value] : score.details) report[name]["details"][detail] = value;
  }
  return report;
}

std::string scores_json(const Scores& scores) { return scores_object(scores).dump() + '\n'; }

std::string scores_table(const Scores& scores) {
  std::size_t width = 0;
  for (const auto& [name, score] : scores) width = std::max(width, name.size());
  std::string table;
  for (const auto& [name, score] : scores)
    table += fmt::format("{:{}}  {:10.4f}  {}\n", name, width, score.score, score.signature);
  return table;
}

}  // namespace polyhead::tools
