#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "polyhead/core/error.h"
#include "report_parts.h"
#include "summary_json.h"

namespace polyhead::experiment {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_grid(const Row& row) {
  Json grid = Json::object();
  for (const auto& [key, value] : row.grid) grid[key] = Json::parse(value);
  return grid;
}

Json row_json(const Row& row) {
  const Measure& m = *row.measure;
  return {{"grid", row_grid(row)},     {"control", row.control}, {"seed", row.seed},
          {"split", m.split},          {"metric", m.metric},     {"phenomenon", or_null(m.phenomenon)},
          {"value", or_null(m.value)}, {"low", or_null(m.low)},  {"high", or_null(m.high)},
          {"n", or_null(m.n)}};
}

Json cell_json(const Row& row) {
  const Outcome& o = row.outcome;
  return {{"cell", row.cell},
          {"grid", row_grid(row)},
          {"control", row.control},
          {"seed", row.seed},
          {"status", config::Codec<Status>::text(o.status)},
          {"message", or_null(o.message)},
          {"parameters", o.costs.parameters},
          {"flops_per_token", o.costs.flops_per_token},
          {"score_bytes", o.costs.score_bytes},
          {"learning_rate", o.learning_rate},
          {"step", o.step},
          {"tokens_per_second", o.tokens_per_second}};
}

/// "1 of 2 cells has no result yet"; empty where all have one.
std::string unfinished(const Plan& plan, const Results& results) {
  std::set<std::string> all, without;
  for (const Cell& cell : plan.cells) {
    all.insert(cell.id);
    if (results.find(cell.id) == nullptr) without.insert(cell.id);
  }
  const std::size_t undecided = static_cast<std::size_t>(plan.undecided), count = without.size() + undecided;
  if (count == 0) return "";
  return concat(count, " of ", all.size() + undecided, " cells ", count == 1 ? "has" : "have",
                " no result yet");
}

}  // namespace

Json experiment_json(const Experiment& experiment, const std::string& folder, const std::vector<Row>& rows,
                     int threads) {
  Json json{{"keys", Json::array()},
            {"baseline", grid_json(experiment.config.baseline)},
            {"points", nullptr},
            {"rows", Json::array()},
            {"cells", Json::array()}};
  for (const Axis& axis : experiment.config.grid.axes) json["keys"].push_back(axis.key);
  const Results results(folder);
  const Plan cells = plan(experiment, results.trial_scores());
  const std::string without = unfinished(cells, results);
  json["unfinished"] = without.empty() ? Json(nullptr) : Json(without);
  std::vector<Group> groups = summarize(experiment, cells, results);
  const std::string missing = add_bootstrap(groups, experiment, cells, results, folder, threads);
  json["bootstrap"] = {{"draws", bootstrap_draws},
                       {"missing", missing.empty() ? Json(nullptr) : Json(missing)}};
  json["points"] = points_json(groups);
  const std::string base = base_id(experiment);
  std::set<std::pair<std::string, std::string>> seen;
  for (const Row& row : rows) {
    if (row.base != base || row.trial) continue;
    if (row.measure) json["rows"].push_back(row_json(row));
    if (seen.emplace(row.cell, row.control).second) json["cells"].push_back(cell_json(row));
  }
  return json;
}

}  // namespace polyhead::experiment
