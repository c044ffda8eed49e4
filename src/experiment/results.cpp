#include "polyhead/experiment/results.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
#include "rows.h"

namespace polyhead::experiment {
namespace {

/// Where `name` stands in `names`; behind them all when it does not.
std::size_t place_in(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

auto identity(const Measure& m) { return std::tie(m.split, m.metric, m.phenomenon, m.limit); }

bool has(const Outcome& outcome, const std::string& split, const std::string& metric,
         std::optional<int> limit) {
  return std::any_of(outcome.measures.begin(), outcome.measures.end(), [&](const Measure& m) {
    return m.split == split && m.metric == metric && !m.phenomenon && m.limit == limit;
  });
}

Row row_of(const Cell& cell, const std::string& base) {
  Row row{
      .cell = cell.id, .base = base, .control = name(cell.control), .trial = cell.trial, .seed = cell.seed};
  for (const config::Setting& setting : cell.point.settings)
    row.grid.emplace_back(setting.key, json_text(setting.value));
  return row;
}

}  // namespace

config::EnumNames<Status> enum_names(Status) {
  return {{Status::finished, "finished"}, {Status::diverged, "diverged"}, {Status::failed, "failed"}};
}

Results::Results(std::string folder)
    : folder_(std::move(folder)), read_(read_rows(folder_ + "/results.jsonl")) {
  for (const Row& row : read_) {
    Outcome& outcome = outcomes_[row.cell];
    std::vector<Measure> measures = std::move(outcome.measures);
    outcome = row.outcome;
    outcome.measures = std::move(measures);
    const auto same = [&](const Measure& m) { return identity(m) == identity(*row.measure); };
    if (row.measure && std::none_of(outcome.measures.begin(), outcome.measures.end(), same))
      outcome.measures.push_back(*row.measure);
  }
}

const Outcome* Results::find(const std::string& id) const {
  const auto found = outcomes_.find(id);
  return found == outcomes_.end() ? nullptr : &found->second;
}

void Results::put(const std::string& id, Outcome outcome) {
  if (const Outcome* before = find(id); before != nullptr && before->status == Status::finished) {
    if (outcome.status != Status::finished) return;  // what is known of it stays true
    for (const Measure& old : before->measures)
      if (std::none_of(outcome.measures.begin(), outcome.measures.end(),
                       [&](const Measure& m) { return identity(m) == identity(old); }))
        outcome.measures.push_back(old);
  }
  outcomes_[id] = std::move(outcome);
}

std::vector<std::string> Results::missing_splits(const Cell& cell, const EvaluationPlan& evaluation) const {
  std::vector<std::string> missing;
  if (cell.trial) return missing;
  const Outcome* outcome = find(cell.id);
  for (const std::string& split : splits_of(evaluation))
    if (outcome == nullptr ||
        !std::all_of(evaluation.metrics.begin(), evaluation.metrics.end(),
                     [&](const auto& metric) { return has(*outcome, split, metric, evaluation.limit); }))
      missing.push_back(split);
  return missing;
}

bool Results::is_complete(const Cell& cell, const EvaluationPlan& evaluation) const {
  const Outcome* outcome = find(cell.id);
  if (outcome == nullptr || outcome->status == Status::failed) return false;
  return outcome->status == Status::diverged || missing_splits(cell, evaluation).empty();
}

TrialScores Results::trial_scores() const {
  TrialScores scores;
  for (const auto& [id, outcome] : outcomes_) {
    double score = -std::numeric_limits<double>::infinity();
    for (const Measure& m : outcome.measures)
      if (m.split == "valid" && !m.limit && m.value && outcome.status == Status::finished) {
        const bool lower = m.metric == "loss" || m.metric == "perplexity";
        score = std::max(score, lower ? -*m.value : *m.value);
      }
    if (outcome.status != Status::failed) scores[id] = score;
  }
  return scores;
}

std::vector<Row> Results::rows(const std::vector<Cell>& cells, const std::string& base,
                               const EvaluationPlan& evaluation) const {
  const std::vector<std::string> splits = splits_of(evaluation);
  std::vector<Row> result;
  std::set<std::string> written, tried;
  for (const Cell& cell : cells) {
    const Outcome* outcome = find(cell.id);
    if (outcome == nullptr) continue;
    Row row = row_of(cell, base);
    (cell.trial ? tried : written).insert(cell.id);
    row.outcome = *outcome;
    row.outcome.measures.clear();
    std::vector<Measure> measures;
    for (const Measure& m : outcome->measures)
      if (!cell.trial || m.split == "valid") measures.push_back(m);
    const auto order = [&](const Measure& m) {
      return std::make_tuple(m.split != "valid" || m.limit, place_in(splits, m.split), m.split,
                             m.limit != evaluation.limit, m.limit, place_in(evaluation.metrics, m.metric),
                             m.metric, m.phenomenon);
    };
    std::sort(measures.begin(), measures.end(),
              [&](const Measure& a, const Measure& b) { return order(a) < order(b); });
    if (measures.empty()) result.push_back(row);
    for (Measure& measure : measures) {
      row.measure = std::move(measure);
      result.push_back(row);
    }
  }
  for (const Row& row : read_)
    if (!written.contains(row.cell) && !(row.trial && tried.contains(row.cell))) result.push_back(row);
  return result;
}

void Results::write(const std::vector<Row>& rows) const {
  replace_file(folder_ + "/results.jsonl", to_jsonl(rows));
  replace_file(folder_ + "/results.csv", to_csv(rows));
}

Results::Others Results::others(const std::vector<Cell>& cells, const std::string& base) const {
  std::set<std::string> known;
  for (const Cell& cell : cells) known.insert(cell.id);
  Others others;
  for (const Row& row : read_)
    if (known.insert(row.cell).second)
      (row.base == base ? others.of_this_base : others.of_another_base).push_back(row.cell);
  return others;
}

}  // namespace polyhead::experiment
