#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "polyhead/experiment/summary.h"

namespace polyhead::experiment {
namespace {

/// Rows of cells with their columns aligned: the first column to the left, the others to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < 2 ? fmt::format("{:{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

/// 1234567 -> "1.23 M"
std::string short_text(double value) {
  for (const auto& [unit, name] : {std::pair{1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
    if (value >= unit) return fmt::format("{:.3g}{}", value / unit, name);
  return fmt::format("{:.3g}", value);
}

std::string label(const Group& group) { return group.point.settings.empty() ? "(base)" : text(group.point); }

/// Decimals that a metric is shown with: percent have two.
int decimals(const std::string& metric) { return metric == "loss" || metric == "perplexity" ? 4 : 2; }

std::string interval(const std::optional<metrics::Estimate>& e, int digits) {
  return e && std::isfinite(e->low) ? fmt::format("[{:.{}f}, {:.{}f}]", e->low, digits, e->high, digits) : "";
}

std::string p_text(double p) { return p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", p); }

std::string costs_table(const std::vector<Group>& groups) {
  std::vector<std::vector<std::string>> rows{{"control", "grid", "parameters", "FLOPs/token", "scores B",
                                              "tokens/s", "learning rate", "finished", "diverged", "failed"}};
  for (const Group& g : groups) {
    const auto known = [](bool is, const std::string& text) { return is ? text : "-"; };
    const bool any = g.finished + g.diverged + g.failed > 0;
    rows.push_back(
        {name(g.control), label(g), known(any, std::to_string(g.costs.parameters)),
         known(any, short_text(g.costs.flops_per_token)), known(any, short_text(g.costs.score_bytes)),
         known(g.tokens_per_second > 0, fmt::format("{:.0f}", g.tokens_per_second)),
         known(any, fmt::format("{:.3g}", g.learning_rate)), fmt::format("{}/{}", g.finished, g.cells),
         std::to_string(g.diverged), std::to_string(g.failed)});
  }
  return aligned(rows);
}

template <class Has>
bool any_figure(const std::vector<Group>& groups, const Has& has) {
  return std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
    return std::any_of(group.figures.begin(), group.figures.end(), has);
  });
}

std::string figures_table(const std::vector<Group>& groups, std::size_t at, bool compared) {
  const Figure& first = groups.front().figures[at];
  const bool bootstrapped = std::any_of(groups.begin(), groups.end(),
                                        [at](const Group& g) { return g.figures[at].bootstrap.has_value(); });
  const bool tested = std::any_of(groups.begin(), groups.end(),
                                  [at](const Group& g) { return g.figures[at].equivalence.has_value(); });
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& text) { rows.back().push_back(text); };
  const auto add_intervals = [&](const std::string& of_t, const std::string& of_bootstrap) {
    add(of_t);
    if (bootstrapped) add(of_bootstrap);
  };
  rows.push_back({"control", "grid", "mean"});
  add_intervals("95% interval", "bootstrap");
  add("seeds");
  if (compared) {
    add("difference");
    add_intervals("95% interval", "bootstrap");
    rows.back().insert(rows.back().end(), {"p", "p (Holm)", "pairs"});
    if (tested) rows.back().insert(rows.back().end(), {"margin", "p (TOST)"});
  }
  for (const Group& group : groups) {
    const Figure& figure = group.figures[at];
    const int digits = decimals(figure.metric);
    const auto& mean = figure.over_seeds.mean;
    rows.push_back({name(group.control), label(group),
                    figure.over_seeds.seeds > 0 ? fmt::format("{:.{}f}", mean.score, digits) : "-"});
    add_intervals(interval(mean, digits), interval(figure.bootstrap, digits));
    add(std::to_string(figure.over_seeds.seeds));
    if (const auto& d = figure.difference) {
      add(fmt::format("{:+.{}f}", d->difference.score, digits));
      add_intervals(interval(d->difference, digits), interval(figure.difference_bootstrap, digits));
      rows.back().insert(rows.back().end(),
                         {p_text(d->p), p_text(figure.adjusted_p), std::to_string(d->pairs)});
      if (const auto& e = figure.equivalence)
        rows.back().insert(rows.back().end(), {fmt::format("{:g}", e->margin), p_text(e->p)});
    }
  }
  return fmt::format("\n{} on {}\n", first.metric, first.split) + aligned(rows);
}

/// Phenomena × points: means and, where there are some, differences with their p.
std::string phenomena_table(const std::vector<const Group*>& groups, const std::string& metric) {
  std::vector<std::vector<std::string>> rows{{"phenomenon", "split"}};
  std::vector<bool> compared;
  for (const Group* group : groups) {
    rows.front().push_back(label(*group));
    compared.push_back(std::any_of(group->figures.begin(), group->figures.end(), [&](const Figure& f) {
      return f.metric == metric && f.phenomenon && f.difference;
    }));
    if (compared.back()) rows.front().insert(rows.front().end(), {"difference", "p (BH)"});
  }
  const int digits = decimals(metric);
  for (std::size_t at = 0; at < groups.front()->figures.size(); ++at) {
    const Figure& first = groups.front()->figures[at];
    if (first.metric != metric || !first.phenomenon) continue;
    rows.push_back({*first.phenomenon, first.split});
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Figure& figure = groups[g]->figures[at];
      const bool any = figure.over_seeds.seeds > 0;
      rows.back().push_back(any ? fmt::format("{:.{}f}", figure.over_seeds.mean.score, digits) : "-");
      if (!compared[g]) continue;
      const auto& d = figure.difference;
      rows.back().push_back(d ? fmt::format("{:+.{}f}", d->difference.score, digits) : "");
      rows.back().push_back(d ? p_text(figure.adjusted_p) : "");
    }
  }
  if (rows.size() == 1) return "";
  const Control control = groups.front()->control;
  return fmt::format("\n{} by phenomenon{}\n", metric, control == Control::none ? "" : ", " + name(control)) +
         aligned(rows);
}

std::string phenomena_tables(const Experiment& experiment, const std::vector<Group>& groups) {
  std::string text;
  for (const std::string& metric : experiment.config.evaluation.metrics)
    for (const Control control : experiment.config.controls) {
      std::vector<const Group*> own;
      for (const Group& group : groups)
        if (group.control == control) own.push_back(&group);
      if (!own.empty()) text += phenomena_table(own, metric);
    }
  return text;
}

/// What the tables' columns are.
std::string legend(const Experiment& experiment, const std::vector<Group>& groups) {
  std::string text =
      "\nFLOPs/token: forward and backward, a target token; scores B: bytes of the attention scores of a "
      "sentence pair;\ntokens/s: target tokens a second of one thread, measured in training. Means and t "
      "intervals are over seeds.\n";
  if (!experiment.config.baseline.settings.empty())
    text +=
        "Differences are to " + experiment::text(experiment.config.baseline) +
        ", paired by seed; p of the paired t test, Holm-corrected over all differences in a metric under a "
        "control.\n";
  if (any_figure(groups, [](const Figure& f) { return f.phenomenon && f.difference; }))
    text += "p (BH): the same of phenomena, corrected by Benjamini and Hochberg's method.\n";
  if (any_figure(groups, [](const Figure& f) { return f.equivalence.has_value(); }))
    text +=
        "p (TOST): of a difference of the margin or more, either way, by two one-sided paired t tests; below "
        "0.05, there is none.\n";
  if (any_figure(groups, [](const Figure& f) { return f.bootstrap.has_value(); }))
    text += fmt::format(
        "bootstrap: 95% percentile interval over seeds, then sentences, of {} draws; of the first split. "
        "With few "
        "seeds\nit is narrower than the t interval, which knows how uncertain the spread of so few is.\n",
        bootstrap_draws);
  return text;
}

}  // namespace

std::string summary_text(const Experiment& experiment, const std::vector<Group>& groups,
                         const std::string& note) {
  if (groups.empty()) return "";
  const bool compared = !experiment.config.baseline.settings.empty();
  std::string text = costs_table(groups);
  for (std::size_t at = 0; at < groups.front().figures.size(); ++at)
    if (!groups.front().figures[at].phenomenon) text += figures_table(groups, at, compared);
  text += phenomena_tables(experiment, groups) + legend(experiment, groups);
  return note.empty() ? text : text + note + '\n';
}

}  // namespace polyhead::experiment
