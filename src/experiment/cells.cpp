#include "polyhead/experiment/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include "controls.h"
#include "polyhead/core/rng.h"
#include "polyhead/data/corpus.h"
#include "polyhead/data/grammar/grammar.h"

namespace polyhead::experiment {
namespace {

/// Without what cannot change a result.
train::Config essential(train::Config config) {
  const train::Config defaults;
  config.name = defaults.name;
  config.training.checkpoint_every = defaults.training.checkpoint_every;
  config.training.keep_last = defaults.training.keep_last;
  config.training.keep_best = defaults.training.keep_best;
  config.training.diagnostics_every = defaults.training.diagnostics_every;
  config.checkpoint = defaults.checkpoint;
  return config;
}

/// The version of the toy language, where it matters and is not the first, of which ids say nothing.
std::string language_text(const data::DataConfig& data, int version) {
  return data.task == "grammar" && version > 1 ? concat("language=", version, '\n') : "";
}

/// What is in the files, as far as it is known; `left_out` says of which keys not.
template <class LeftOut>
std::string files_text(const train::Config& config, const Digests& digests, const LeftOut& left_out) {
  std::string text;
  for (const auto& [key, path] : data_files(config))
    if (const auto found = digests.of.find(path); found != digests.of.end() && !left_out(key))
      text += concat("digest of ", key, '=', found->second, '\n');
  return text;
}

std::string hexadecimal(const std::string& text) { return fmt::format("{:016x}", hash(text)); }

/// The widths of heads as null where that means the same: one model, one configuration.
void normalise(nn::ModelConfig& model) {
  if (model.value_dim == model.key_width()) model.value_dim.reset();
  if (model.heads.lists() || !model.head_dim || model.value_dim) return;
  if (*model.head_dim * int{model.heads} == model.d_model) model.head_dim.reset();
}

/// What is wrong, each message once, in the order found.
class Findings {
 public:
  void add(const std::string& messages) {
    std::istringstream lines(messages);
    for (std::string line; std::getline(lines, line);)
      if (seen_.insert(line).second) text_ += (text_.empty() ? "" : "\n") + line;
  }
  void raise() const {
    if (!text_.empty()) throw Error(text_);
  }

 private:
  std::set<std::string> seen_;
  std::string text_;
};

std::vector<Point> points_of(const Grid& grid) {
  std::vector<Point> points{{}};
  for (const Axis& axis : grid.axes) {
    std::vector<Point> extended;
    for (const Point& point : points)
      for (const config::Node& value : axis.values) {
        extended.push_back(point);
        extended.back().settings.push_back({axis.key, value});
      }
    points = std::move(extended);
  }
  return points;
}

config::Setting seed_setting(const Experiment& experiment, std::uint64_t seed) {
  const config::Node* given = experiment.tree.find("seeds");
  return {"seed",
          {.kind = config::Node::Kind::scalar,
           .place = given != nullptr ? given->place : experiment.tree.place,
           .text = std::to_string(seed)}};
}

train::Config resolve(const Experiment& experiment, const Point& point, std::uint64_t seed,
                      std::span<const config::Setting> more) {
  std::vector<config::Setting> settings = point.settings;
  settings.insert(settings.end(), more.begin(), more.end());
  settings.push_back(seed_setting(experiment, seed));
  auto config = config::parse<train::Config>(config::with_settings(experiment.base, settings));
  normalise(config.model);
  return config;
}

/// The baseline's values in place of the point's.
Point replaced(const Experiment& experiment, Point point) {
  for (config::Setting& setting : point.settings)
    if (const config::Node* value = experiment.config.baseline.find(setting.key)) setting.value = *value;
  return point;
}

/// Whether a task can have a split; which files are given is another question.
bool knows_split(const data::DataConfig& data, const std::string& split) {
  if (split == "train" || split == "valid" || split == "test") return true;
  if (data.task != "grammar") return false;
  const auto splits = data::grammar::splits();
  return std::any_of(splits.begin(), splits.end(), [&](const auto& row) { return row.name == split; });
}

/// Whether the files of a split are given, where it is one of files.
bool has_files(const data::DataConfig& data, const std::string& split) {
  for (const data::Split candidate : {data::Split::train, data::Split::valid, data::Split::test})
    if (name(candidate) == split) return data::has_split(data, candidate);
  return true;
}

class Planner {
 public:
  Planner(const Experiment& experiment, const TrialScores& trials)
      : experiment_(experiment), trials_(trials), place_(experiment.tree.place) {
    if (const config::Node* given = experiment.tree.find("controls")) place_ = given->place;
  }

  Plan run() {
    for (const Point& point : points_of(experiment_.config.grid))
      for (const Control control : experiment_.config.controls) {
        if (control == Control::learning_rate_search)
          search(point);
        else
          for (const std::uint64_t seed : experiment_.config.seeds) add(point, control, seed);
      }
    findings_.raise();
    return std::move(plan_);
  }

 private:
  std::vector<config::Setting> changes(const Point& point, Control control, std::uint64_t seed) {
    const train::Config of_point = resolve(experiment_, point, seed, {});
    const train::Config of_baseline = resolve(experiment_, replaced(experiment_, point), seed, {});
    try {
      return control_settings(control, experiment_.config, of_point, of_baseline, place_);
    } catch (const Error& error) {
      throw Error(concat(place_.text, ": controls: ", error.what()));
    }
  }

  config::Setting learning_rate(const Point& point, std::uint64_t seed, double factor) const {
    const double rate = resolve(experiment_, point, seed, {}).training.schedule.learning_rate;
    return {"training.learning_rate",
            {.kind = config::Node::Kind::scalar,
             .place = place_,
             .text = config::Codec<double>::text(factor * rate)}};
  }

  /// Adds a cell, at `factor` times its learning rate; null where it cannot be.
  const Cell* add(const Point& point, Control control, std::uint64_t seed, double factor = 1) {
    try {
      Cell cell{.point = point, .control = control, .seed = seed};
      std::vector<config::Setting> settings = changes(point, control, seed);
      if (factor != 1) settings.push_back(learning_rate(point, seed, factor));
      cell.config = resolve(experiment_, point, seed, settings);
      cell.id = cell_id(cell.config, data::grammar::version, experiment_.config.digests);
      cell.config.name = cell.id;
      check_evaluation(cell.config.data);
      plan_.cells.push_back(std::move(cell));
      return &plan_.cells.back();
    } catch (const Error& error) {
      findings_.add(error.what());
      return nullptr;
    }
  }

  /// Whether a trial beats the best one so far; of equal scores the rate nearer to the point's own does.
  static bool better(double score, double factor, double best_score, double best) {
    return score != best_score ? score > best_score : std::abs(std::log(factor)) < std::abs(std::log(best));
  }

  void search(const Point& point) {
    const std::vector<std::uint64_t>& seeds = experiment_.config.seeds;
    std::optional<double> best;
    double best_score = 0;
    bool complete = true;
    for (const double factor : experiment_.config.learning_rate_factors) {
      if (add(point, Control::learning_rate_search, seeds.front(), factor) == nullptr) return;
      plan_.cells.back().trial = factor;
      const auto score = trials_.find(plan_.cells.back().id);
      complete &= score != trials_.end();
      if (!complete || (best && !better(score->second, factor, best_score, *best))) continue;
      best = factor;
      best_score = score->second;
    }
    const train::Config& config = plan_.cells.back().config;
    if (config.data.task == "files" && config.data.valid.source.empty())
      findings_.add(place_.text + ": controls: learning_rate_search needs data.valid, which is not given");
    if (!complete) {
      plan_.undecided += static_cast<std::int64_t>(seeds.size());
      return;
    }
    for (const std::uint64_t seed : seeds) add(point, Control::learning_rate_search, seed, *best);
  }

  void check_evaluation(const data::DataConfig& data) {
    std::vector<config::Problem> found;
    config::Problems problems(found, experiment_.tree, "");
    const EvaluationPlan& evaluation = experiment_.config.evaluation;
    for (const std::string& split : splits_of(evaluation))
      if (!knows_split(data, split))
        problems.add("evaluation.splits", '"', split, "\", but data.task ", data.task, " has no such split");
      else if (split != "train" && !has_files(data, split))
        problems.add("evaluation.splits", '"', split, "\", but no files are given in data.", split);
    if (!has_files(data, "train")) problems.add("base", "no files are given in data.train");
    for (const std::string& metric : evaluation.metrics)
      if (data.task != "grammar" && metric.ends_with("_accuracy") && metric != "token_accuracy")
        problems.add("evaluation.metrics", metric, " is of the toy language, but data.task is ", data.task);
    for (const config::Problem& problem : found) findings_.add(problem.message);
  }

  const Experiment& experiment_;
  const TrialScores& trials_;
  config::Place place_;
  Plan plan_;
  Findings findings_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> data_files(const train::Config& config) {
  if (config.data.task != "files") return {};
  std::vector<std::pair<std::string, std::string>> files{
      {"tokenizer.model", config.tokenizer.model},
      {"tokenizer.source_model", config.tokenizer.source_model},
      {"tokenizer.target_model", config.tokenizer.target_model}};
  for (const auto& [split, pair] : {std::pair{"data.train", config.data.train},
                                    {"data.valid", config.data.valid},
                                    {"data.test", config.data.test}}) {
    files.emplace_back(concat(split, ".source"), pair.source);
    files.emplace_back(concat(split, ".target"), pair.target);
  }
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  return files;
}

std::string cell_id(const train::Config& config, int language, const Digests& digests) {
  std::string text = language_text(config.data, language) +
                     files_text(config, digests, [](const std::string&) { return false; });
  for (const config::Difference& d : config::difference(train::Config{}, essential(config)))
    text += d.key + "=" + d.second + "\n";
  return hexadecimal(text);
}

std::string base_id(const Experiment& experiment) {
  const Point first = points_of(experiment.config.grid).front();
  const train::Config base = resolve(experiment, first, experiment.config.seeds.front(), {});
  const auto varies = [&](const std::string& key) {
    return std::any_of(first.settings.begin(), first.settings.end(), [&](const auto& setting) {
      return key == setting.key || key.starts_with(setting.key + ".");
    });
  };
  std::string text =
      language_text(base.data, data::grammar::version) + files_text(base, experiment.config.digests, varies);
  for (const config::Difference& d : config::difference(train::Config{}, essential(base))) {
    if (!varies(d.key) && d.key != "seed") text += d.key + "=" + d.second + "\n";
  }
  return hexadecimal(text);
}

Plan plan(const Experiment& experiment, const TrialScores& trials) {
  return Planner(experiment, trials).run();
}

std::vector<std::string> splits_of(const EvaluationPlan& evaluation) {
  std::vector<std::string> splits;
  const auto add = [&](std::string_view split) {
    if (std::find(splits.begin(), splits.end(), split) == splits.end()) splits.emplace_back(split);
  };
  for (const std::string& split : evaluation.splits) {
    if (split != "all") {
      add(split);
      continue;
    }
    add("test");
    for (const std::string_view phenomenon : data::phenomenon_names) add(phenomenon);
    for (const char* general : {"length", "depth", "composition", "attractors"}) add(general);
  }
  return splits;
}

std::optional<Point> baseline_of(const Experiment& experiment, const Point& point) {
  if (experiment.config.baseline.settings.empty()) return std::nullopt;
  Point baseline = replaced(experiment, point);
  return text(baseline) == text(point) ? std::nullopt : std::optional(std::move(baseline));
}

}  // namespace polyhead::experiment
