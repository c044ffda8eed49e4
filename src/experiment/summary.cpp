#include "polyhead/experiment/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "groups.h"

namespace polyhead::experiment {
namespace {

/// Values by seed; not a number where a cell diverged or failed.
using BySeed = std::map<std::uint64_t, double>;

class Summary {
 public:
  Summary(const Experiment& experiment, const Plan& plan, const Results& results)
      : experiment_(experiment), plan_(plan), results_(results) {}

  std::vector<Group> run() {
    for (const Control control : experiment_.config.controls)
      for (const Cell& cell : plan_.cells) {
        const auto same = [&](const Group& group) { return is_of(cell, group.point, group.control); };
        if (cell.control == control && !cell.trial && std::none_of(groups_.begin(), groups_.end(), same))
          groups_.push_back(group_of(cell));
      }
    for (Group& group : groups_) compare(group);
    adjust();
    return std::move(groups_);
  }

 private:
  Group group_of(const Cell& first) const {
    Group group{.point = first.point, .control = first.control};
    std::vector<const Outcome*> outcomes;
    for (const Cell& cell : plan_.cells) {
      if (!is_of(cell, group.point, group.control)) continue;
      ++group.cells;
      if (const Outcome* outcome = results_.find(cell.id)) outcomes.push_back(outcome);
    }
    for (const Outcome* o : outcomes) {
      ++(o->status == Status::finished   ? group.finished
         : o->status == Status::diverged ? group.diverged
                                         : group.failed);
      const auto n = static_cast<double>(outcomes.size());
      group.costs.parameters = o->costs.parameters;
      group.costs.flops_per_token += o->costs.flops_per_token / n;
      group.costs.score_bytes += o->costs.score_bytes / n;
      group.tokens_per_second += o->tokens_per_second / n;
      group.learning_rate += o->learning_rate / n;
    }
    const EvaluationPlan& evaluation = experiment_.config.evaluation;
    for (const std::string& metric : evaluation.metrics)
      for (const std::string& split : splits_of(evaluation))
        group.figures.push_back(figure_of(group, {.split = split, .metric = metric}));
    for (const Figure& figure : phenomena()) group.figures.push_back(figure_of(group, figure));
    return group;
  }

  Figure figure_of(const Group& group, Figure figure) const {
    std::vector<double> values;
    for (const auto& [seed, value] : by_seed(group, figure)) values.push_back(value);
    figure.over_seeds = metrics::summarize(values);
    return figure;
  }

  /// What is measured of phenomena in any cell.
  std::vector<Figure> phenomena() const {
    std::set<std::tuple<std::string, std::string, std::string>> names;
    for (const Cell& cell : plan_.cells)
      if (const Outcome* outcome = results_.find(cell.id))
        for (const Measure& m : outcome->measures)
          if (m.phenomenon && m.limit == experiment_.config.evaluation.limit)
            names.emplace(m.metric, m.split, *m.phenomenon);
    std::vector<Figure> figures;
    for (const auto& [metric, split, phenomenon] : names)
      figures.push_back({.split = split, .metric = metric, .phenomenon = phenomenon});
    return figures;
  }

  BySeed by_seed(const Group& group, const Figure& figure) const {
    BySeed values;
    for (const Cell& cell : plan_.cells)
      if (is_of(cell, group.point, group.control))
        if (const Outcome* outcome = results_.find(cell.id))
          values[cell.seed] = value_of(*outcome, figure, experiment_.config.evaluation.limit);
    return values;
  }

  void compare(Group& group) const {
    const std::optional<Point> baseline = baseline_of(experiment_, group.point);
    if (!baseline) return;
    const Group of_baseline{.point = *baseline, .control = group.control};
    for (Figure& figure : group.figures) {
      std::vector<double> before, after;
      const BySeed base = by_seed(of_baseline, figure);
      for (const auto& [seed, value] : by_seed(group, figure))
        if (const auto found = base.find(seed); found != base.end()) {
          before.push_back(found->second);
          after.push_back(value);
        }
      const metrics::PairedDifference difference = metrics::paired_difference(before, after);
      if (difference.pairs < 2) continue;
      figure.difference = difference;
      if (const auto margin = experiment_.config.evaluation.equivalence.find(figure.metric))
        figure.equivalence = metrics::paired_equivalence(before, after, *margin);
    }
  }

  /// Adjusts p within each control and metric: the figures of all sentences, and apart from them those of phenomena.
  void adjust() {
    for (const Control control : experiment_.config.controls)
      for (const std::string& metric : experiment_.config.evaluation.metrics)
        for (const bool of_phenomena : {false, true}) {
          std::vector<Figure*> family;
          std::vector<double> ps;
          for (Group& group : groups_)
            for (Figure& figure : group.figures)
              if (group.control == control && figure.metric == metric && figure.difference &&
                  figure.phenomenon.has_value() == of_phenomena) {
                family.push_back(&figure);
                ps.push_back(figure.difference->p);
              }
          const std::vector<double> adjusted =
              of_phenomena ? metrics::benjamini_hochberg(ps) : metrics::holm(ps);
          for (std::size_t i = 0; i < family.size(); ++i) family[i]->adjusted_p = adjusted[i];
        }
  }

  const Experiment& experiment_;
  const Plan& plan_;
  const Results& results_;
  std::vector<Group> groups_;
};

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
  for (const Group& g : groups)
    rows.push_back({name(g.control), label(g), std::to_string(g.costs.parameters),
                    short_text(g.costs.flops_per_token), short_text(g.costs.score_bytes),
                    fmt::format("{:.0f}", g.tokens_per_second), fmt::format("{:.3g}", g.learning_rate),
                    fmt::format("{}/{}", g.finished, g.cells), std::to_string(g.diverged),
                    std::to_string(g.failed)});
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

bool is_of(const Cell& cell, const Point& point, Control control) {
  return !cell.trial && cell.control == control && text(cell.point) == text(point);
}

double value_of(const Outcome& outcome, const Figure& figure, std::optional<int> limit) {
  if (outcome.status == Status::finished)
    for (const Measure& m : outcome.measures)
      if (m.split == figure.split && m.metric == figure.metric && m.phenomenon == figure.phenomenon &&
          m.limit == limit && m.value)
        return *m.value;
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<Group> summarize(const Experiment& experiment, const Plan& plan, const Results& results) {
  return Summary(experiment, plan, results).run();
}

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
