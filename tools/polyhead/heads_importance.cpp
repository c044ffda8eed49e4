#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "files.h"
#include "heads_lab.h"
#include "polyhead/heads/head_set.h"
#include "polyhead/metrics/statistics.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;
using heads::Head;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

struct Correlation {
  const char *a, *b;
  metrics::RankCorrelation rank;
};

/// Of all pairs of figures, where there are heads enough.
std::vector<Correlation> correlations(const heads::HeadFigures& figures) {
  std::vector<Correlation> result;
  if (figures.heads.size() < 3) return result;
  for (std::size_t i = 0; i < figure_columns().size(); ++i)
    for (std::size_t j = i + 1; j < figure_columns().size(); ++j)
      result.push_back(
          {figure_columns()[i].first, figure_columns()[j].first,
           metrics::spearman(figures.*figure_columns()[i].second, figures.*figure_columns()[j].second)});
  return result;
}

std::string importance_json(Json report, const heads::HeadFigures& figures) {
  report["heads"] = Json::array();
  for (std::size_t h = 0; h < figures.heads.size(); ++h) {
    const Head& head = figures.heads[h];
    Json entry{{"kind", nn::name(head.site.kind)}, {"layer", head.site.layer}, {"head", head.head}};
    for (const auto& [name, column] : figure_columns()) entry[name] = (figures.*column)[h];
    report["heads"].push_back(std::move(entry));
  }
  report["rank_correlations"] = Json::array();
  for (const Correlation& c : correlations(figures))
    report["rank_correlations"].push_back(
        {{"a", c.a}, {"b", c.b}, {"rho", number_or_null(c.rank.rho)}, {"p", number_or_null(c.rank.p)}});
  return report.dump() + '\n';
}

std::string importance_table(const heads::HeadFigures& figures) {
  std::string table = fmt::format("{:14}", "head");
  for (const auto& [name, column] : figure_columns()) table += fmt::format("  {:>12}", name);
  table += '\n';
  for (std::size_t h = 0; h < figures.heads.size(); ++h) {
    table += fmt::format("{:14}", heads::name(figures.heads[h]));
    for (const auto& [name, column] : figure_columns())
      table += fmt::format("  {:>{}.5f}", (figures.*column)[h],
                           std::max<std::size_t>(12, std::string_view(name).size()));
    table += '\n';
  }
  table += "\nSpearman's rank correlation over all heads\n";
  for (const Correlation& c : correlations(figures))
    table += fmt::format("{:22} {:22} {:+.3f}  p {:.4f}\n", c.a, c.b, c.rank.rho, c.rank.p);
  return table;
}

int run_importance(const MeasureOptions& o) {
  const train::LoadedModel loaded = load(o, {});
  const heads::Text text = load_text(o, loaded);
  const heads::HeadFigures figures = measure(o, loaded, text);
  write_output("", o.json ? importance_json(header(o, loaded, text), figures) : importance_table(figures));
  return 0;
}

}  // namespace

Command add_importance(CLI::App& heads_command) {
  CLI::App* command =
      heads_command.add_subcommand("importance",
                                   "How much each head matters: the loss's gradient in its gate, the loss "
                                   "without it, its confidence and the norm of "
                                   "its output, and how these agree");
  auto o = std::make_shared<MeasureOptions>();
  add_measuring(*command, *o);
  return {command, [o] { return run_importance(*o); }};
}

}  // namespace polyhead::tools
