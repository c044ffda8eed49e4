#include "polyhead/experiment/summary.h"

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
    for (const Outcome* o : outcomes)
      ++(o->status == Status::finished   ? group.finished
         : o->status == Status::diverged ? group.diverged
                                         : group.failed);
    add_costs(group, outcomes);
    const EvaluationPlan& evaluation = experiment_.config.evaluation;
    for (const std::string& metric : evaluation.metrics)
      for (const std::string& split : splits_of(evaluation))
        group.figures.push_back(figure_of(group, {.split = split, .metric = metric}));
    for (const Figure& figure : phenomena()) group.figures.push_back(figure_of(group, figure));
    return group;
  }

  /// Means over the outcomes; of speed over those that have one, which a cell that failed early does not.
  static void add_costs(Group& group, const std::vector<const Outcome*>& outcomes) {
    const auto n = static_cast<double>(outcomes.size());
    double parameters = 0, timed = 0;
    for (const Outcome* o : outcomes) {
      parameters += static_cast<double>(o->costs.parameters) / n;
      group.costs.flops_per_token += o->costs.flops_per_token / n;
      group.costs.score_bytes += o->costs.score_bytes / n;
      group.learning_rate += o->learning_rate / n;
      group.tokens_per_second += o->tokens_per_second;
      if (o->tokens_per_second > 0) ++timed;
    }
    group.costs.parameters = std::llround(parameters);  // those of embeddings go by the seed's vocabulary
    if (timed > 0) group.tokens_per_second /= timed;
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

}  // namespace polyhead::experiment
