#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "json_shape.h"
#include "polyhead/core/error.h"
#include "report_parts.h"

namespace polyhead::experiment {
namespace {

using Json = nlohmann::ordered_json;

/// Points of a curve at most.
constexpr std::size_t most_points = 200;

constexpr std::string_view diagnostics_shape = R"({
    "heads": [{"kind": "encoder, decoder or cross", "layer": "a whole number from 0 to 999",
               "head": "a whole number from 0 to 999", "positional?": "true or false", "*": "a number"}]})";

/// Figures by name, each with a value or not a number for every step.
class Columns {
 public:
  void add(double step, const Json& figures) {
    for (const auto& [name, value] : figures.items())
      if (value.is_number() && name != "step") {
        std::vector<double>& column = column_of(name);
        column.resize(steps_.size(), std::nan(""));
        column.push_back(value.get<double>());
      }
    steps_.push_back(step);
  }

  /// Means over `width` steps each, by their last step.
  Json json(std::size_t width) const {
    Json result{{"step", Json::array()}};
    for (std::size_t i = 0; i < steps_.size(); i += width)
      result["step"].push_back(steps_[std::min(i + width, steps_.size()) - 1]);
    for (const auto& [name, column] : columns_) {
      Json& means = result[name] = Json::array();
      for (std::size_t i = 0; i < steps_.size(); i += width) {
        double sum = 0, count = 0;
        for (std::size_t j = i; j < std::min({i + width, steps_.size(), column.size()}); ++j)
          if (std::isfinite(column[j])) sum += column[j], ++count;
        means.push_back(count > 0 ? Json(sum / count) : Json(nullptr));
      }
    }
    return result;
  }

  std::size_t size() const { return steps_.size(); }

 private:
  std::vector<double>& column_of(const std::string& name) {
    for (auto& [known, column] : columns_)
      if (known == name) return column;
    return columns_.emplace_back(name, std::vector<double>{}).second;
  }

  std::vector<double> steps_;
  std::vector<std::pair<std::string, std::vector<double>>> columns_;
};

}  // namespace

Json curve_json(const std::string& log) {
  std::ifstream in(log, std::ios::binary);
  require<FileError>(in.is_open(), log, ": cannot be read");
  Columns updates, validations;
  Json diagnostics = Json::array();
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const Json entry = Json::parse(line, nullptr, false);
    if (entry.is_discarded() && in.eof()) break;
    require<FileError>(entry.is_object() && entry.contains("step") && entry["step"].is_number(), log, ":",
                       number, ": expected a JSON object with a step");
    const double step = entry["step"];
    if (const auto validation = entry.find("validation"); validation != entry.end())
      validations.add(step, *validation);
    else
      updates.add(step, entry);
    if (const auto found = entry.find("diagnostics"); found != entry.end() && found->contains("heads")) {
      const std::string problem = shape_problem(*found, diagnostics_shape);
      require<FileError>(problem.empty(), log, ":", number, ": expected diagnostics of heads, but ", problem);
      diagnostics.push_back({{"step", step}, {"heads", (*found)["heads"]}});
    }
  }
  const std::size_t width = std::max<std::size_t>(1, (updates.size() + most_points - 1) / most_points);
  Json curve{{"updates", updates.json(width)}, {"validations", validations.json(1)}};
  if (!diagnostics.empty()) curve["diagnostics"] = std::move(diagnostics);
  return curve;
}

}  // namespace polyhead::experiment
