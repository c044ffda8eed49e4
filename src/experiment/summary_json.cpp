#include "summary_json.h"

#include <nlohmann/json.hpp>

#include "rows.h"

namespace polyhead::experiment {
namespace {

using Json = nlohmann::ordered_json;

Json bootstrap_json(const std::optional<metrics::Estimate>& interval) {
  return interval ? Json{{"low", interval->low}, {"high", interval->high}} : Json(nullptr);
}

Json equivalence_json(const std::optional<metrics::Equivalence>& e) {
  if (!e) return nullptr;
  return {{"margin", e->margin}, {"low", e->difference.low}, {"high", e->difference.high}, {"p", e->p}};
}

Json difference_json(const Figure& figure) {
  if (!figure.difference) return nullptr;
  const metrics::PairedDifference& d = *figure.difference;
  return {{"mean", d.difference.score},
          {"low", d.difference.low},
          {"high", d.difference.high},
          {"bootstrap", bootstrap_json(figure.difference_bootstrap)},
          {"pairs", d.pairs},
          {"p", d.p},
          {"p_adjusted", figure.adjusted_p},
          {"equivalence", equivalence_json(figure.equivalence)}};
}

Json figure_json(const Group& group, const Figure& figure) {
  const metrics::SeedSummary& s = figure.over_seeds;
  return {{"grid", grid_json(group.point)},
          {"control", name(group.control)},
          {"split", figure.split},
          {"metric", figure.metric},
          {"phenomenon", figure.phenomenon ? Json(*figure.phenomenon) : Json(nullptr)},
          {"mean", s.mean.score},
          {"low", s.mean.low},
          {"high", s.mean.high},
          {"bootstrap", bootstrap_json(figure.bootstrap)},
          {"seeds", s.seeds},
          {"diverged", s.diverged},
          {"difference", difference_json(figure)}};
}

}  // namespace

Json grid_json(const Point& point) {
  Json grid = Json::object();
  for (const config::Setting& setting : point.settings)
    grid[setting.key] = Json::parse(json_text(setting.value));
  return grid;
}

Json points_json(const std::vector<Group>& groups) {
  Json points = Json::array();
  for (const Group& group : groups)
    for (const Figure& figure : group.figures)
      if (figure.over_seeds.seeds + figure.over_seeds.diverged > 0)
        points.push_back(figure_json(group, figure));
  return points;
}

std::string summary_jsonl(const std::vector<Group>& groups) {
  std::string text;
  for (const Json& point : points_json(groups)) text += point.dump() + '\n';
  return text;
}

}  // namespace polyhead::experiment
