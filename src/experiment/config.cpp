#include "polyhead/experiment/config.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "polyhead/metrics/metrics.h"
#include "polyhead/train/config.h"

namespace polyhead::experiment {
namespace {

/// Reports what is in `values` a second time.
template <class T, class Text>
void check_distinct(config::Problems& problems, std::string_view key, const std::vector<T>& values,
                    const Text& text_of) {
  std::set<std::string> seen;
  for (const T& value : values)
    if (const std::string given = text_of(value); !seen.insert(given).second)
      problems.add(key, given, " is given twice");
}

std::vector<std::string> known_metrics() {
  std::vector<std::string> names = metrics::metric_names();
  for (const auto& [metric, name] : enum_names(train::Metric{}))
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  names.insert(names.end(), {"slot_accuracy", "contrastive_accuracy"});
  return names;
}

constexpr int most_cells = 10'000;

/// Runs that an experiment asks for, trials included. Not an integer: grids are easily written that have more points.
double most_runs(const ExperimentConfig& config) {
  double points = 1, of_point = 0;
  for (const Axis& axis : config.grid.axes) points *= static_cast<double>(axis.values.size());
  for (const Control control : config.controls)
    of_point += static_cast<double>(config.seeds.size() + (control == Control::learning_rate_search
                                                               ? config.learning_rate_factors.size()
                                                               : 0));
  return points * of_point;
}

/// Keys of which one is in the other's section: whichever is set last takes the other's value away.
void check_apart(config::Problems& problems, const std::vector<Axis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t j = i + 1; j < axes.size(); ++j) {
      const std::string &a = axes[i].key, &b = axes[j].key;
      if (a == b)
        problems.add("grid", a, " is given twice");
      else if (a.starts_with(b + '.') || b.starts_with(a + '.'))
        problems.add("grid", a, " and ", b, " overlap, expected keys of which none is part of another");
    }
}

/// Keys that an experiment sets itself.
bool is_own(std::string_view key) { return key == "seed" || key == "name"; }

/// The configuration that `node` of the experiment at `path` is, or names.
config::Node base_of(const config::Node& node, const std::string& path, std::string_view default_base) {
  if (node.kind == config::Node::Kind::mapping) return node;
  if (node.kind == config::Node::Kind::null)
    return config::read_mapping(default_base, "the default configuration");
  const std::string file =
      (std::filesystem::path(path).parent_path() / node.text).lexically_normal().string();
  const auto text = [&] {
    try {
      return config::read_file(file);
    } catch (const Error& error) {
      throw Error(concat(node.place.text, ": base: ", error.what()), error.status());
    }
  };
  return config::read_mapping(text(), file);
}

}  // namespace

config::EnumNames<Control> enum_names(Control) {
  return {{Control::none, "none"},
          {Control::partition, "partition"},
          {Control::fixed_head_dim, "fixed_head_dim"},
          {Control::head_dim, "head_dim"},
          {Control::depth_for_heads, "depth_for_heads"},
          {Control::learning_rate_search, "learning_rate_search"}};
}

std::string name(Control control) { return config::Codec<Control>::text(control); }

const config::Node* Point::find(std::string_view key) const {
  for (const config::Setting& setting : settings)
    if (setting.key == key) return &setting.value;
  return nullptr;
}

std::string text(const Point& point) {
  std::string result;
  for (const config::Setting& setting : point.settings)
    result += (result.empty() ? "" : ", ") + setting.key + " " + config::flow_text(setting.value);
  return result;
}

std::optional<double> Margins::find(std::string_view metric) const {
  for (const auto& [name, margin] : of)
    if (name == metric) return margin;
  return std::nullopt;
}

void EvaluationPlan::validate(config::Problems& problems) const {
  const auto same = [](const std::string& value) { return value; };
  check_distinct(problems, "splits", splits, same);
  check_distinct(problems, "metrics", metrics, same);
  const std::vector<std::string> known = known_metrics();
  std::string names;
  for (const std::string& metric : known) names += (names.empty() ? "" : ", ") + metric;
  for (const std::string& metric : metrics)
    if (std::find(known.begin(), known.end(), metric) == known.end())
      problems.add("metrics", '"', metric, "\", expected some of ", names);
  for (const auto& [metric, margin] : equivalence.of)
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end())
      problems.add("equivalence", '"', metric, "\", expected some of metrics");
}

bool ExperimentConfig::has(Control control) const {
  return std::find(controls.begin(), controls.end(), control) != controls.end();
}

void ExperimentConfig::validate(config::Problems& problems) const {
  check_distinct(problems, "seeds", seeds, [](std::uint64_t seed) { return std::to_string(seed); });
  check_distinct(problems, "controls", controls, [](Control control) { return experiment::name(control); });
  check_distinct(problems, "learning_rate_factors", learning_rate_factors, config::Codec<double>::text);
  check_apart(problems, grid.axes);
  for (const Axis& axis : grid.axes) {
    check_distinct(problems, "grid", axis.values,
                   [&](const config::Node& value) { return axis.key + " " + config::flow_text(value); });
    if (is_own(axis.key))
      problems.add("grid", axis.key, " is set by the experiment itself",
                   axis.key == "seed" ? ", expected seeds to list them" : "");
  }
  for (const config::Setting& setting : baseline.settings) {
    const std::string value = config::flow_text(setting.value);
    const auto axis =
        std::find_if(grid.axes.begin(), grid.axes.end(), [&](const Axis& a) { return a.key == setting.key; });
    const bool known = axis != grid.axes.end() && std::any_of(axis->values.begin(), axis->values.end(),
                                                              [&](const config::Node& candidate) {
                                                                return config::flow_text(candidate) == value;
                                                              });
    if (!known) problems.add("baseline", setting.key, " ", value, " is not in the grid");
  }
  if (const double count = most_runs(*this); count > most_cells)
    problems.add("grid", "with seeds and controls ", count, " cells, expected at most ", most_cells);
  if (controls.empty()) problems.add("controls", "an empty list, expected ", config::Codec<Control>::type());
  if (has(Control::fixed_head_dim) && !head_dim && baseline.settings.empty())
    problems.add("controls", "fixed_head_dim needs head_dim, or a baseline to take it from");
  if (has(Control::head_dim) && baseline.settings.empty())
    problems.add("controls", "head_dim needs a baseline to take the number of heads from");
}

Experiment load_experiment(const std::string& path, std::span<const std::string> overrides,
                           std::string_view default_base) {
  Experiment result;
  result.tree = config::read_mapping(config::read_file(path), path);
  std::string found;
  polyhead::Status status{};  // of the first
  const auto attempt = [&](const auto& part) {
    try {
      part();
    } catch (const Error& error) {
      if (found.empty()) status = error.status();
      found += concat(found.empty() ? "" : "\n", error.what());
    }
  };
  attempt([&] { config::parse(config::describe(result.config), result.tree); });
  const config::Node& base = result.config.base.node;
  if (found.empty() || base.kind != config::Node::Kind::null)  // else there may be one that cannot be read
    attempt([&] { result.base = base_of(base, path, default_base); });
  attempt([&] {
    result.base = config::with_settings(std::move(result.base), config::read_overrides(overrides));
  });
  if (!found.empty()) throw Error(found, status);
  return result;
}

std::string dump(const Experiment& experiment) {
  ExperimentConfig whole = experiment.config;
  whole.base.node = experiment.base;
  return config::dump(whole);
}

}  // namespace polyhead::experiment

namespace polyhead::config {

experiment::Base Codec<experiment::Base>::read(const Node& node) {
  if (node.kind == Node::Kind::sequence || (node.kind == Node::Kind::scalar && node.text.empty()))
    unexpected(node, type());
  return {node};
}

experiment::Grid Codec<experiment::Grid>::read(const Node& node) {
  if (node.kind == Node::Kind::null) return {};
  if (node.kind != Node::Kind::mapping) unexpected(node, type());
  experiment::Grid grid;
  for (const auto& [key, values] : node.members) {
    if (values.kind != Node::Kind::sequence || values.items.empty())
      throw Unexpected{values.place, "." + key,
                       (values.kind == Node::Kind::sequence ? "an empty list" : given(values)) +
                           ", expected a list of values"};
    grid.axes.push_back({key, values.items});
  }
  return grid;
}

std::string Codec<experiment::Grid>::text(const experiment::Grid& grid) {
  Node node{.kind = Node::Kind::mapping};
  for (const experiment::Axis& axis : grid.axes)
    node.members.emplace_back(axis.key, Node{.kind = Node::Kind::sequence, .items = axis.values});
  return flow_text(node);
}

experiment::Point Codec<experiment::Point>::read(const Node& node) {
  if (node.kind == Node::Kind::null) return {};
  if (node.kind != Node::Kind::mapping) unexpected(node, type());
  experiment::Point point;
  for (const auto& [key, value] : node.members) point.settings.push_back({key, value});
  return point;
}

std::string Codec<experiment::Point>::text(const experiment::Point& point) {
  Node node{.kind = Node::Kind::mapping};
  for (const config::Setting& setting : point.settings) node.members.emplace_back(setting.key, setting.value);
  return flow_text(node);
}

experiment::Margins Codec<experiment::Margins>::read(const Node& node) {
  if (node.kind == Node::Kind::null) return {};
  if (node.kind != Node::Kind::mapping) unexpected(node, type());
  experiment::Margins margins;
  for (const auto& [metric, value] : node.members) try {
      margins.of.emplace_back(metric, Codec<double>::read(value));
      if (!(margins.of.back().second > 0)) unexpected(value, "a number above 0");
    } catch (Unexpected& problem) {
      problem.index = "." + metric + problem.index;
      throw;
    }
  return margins;
}

std::string Codec<experiment::Margins>::text(const experiment::Margins& margins) {
  Node node{.kind = Node::Kind::mapping};
  for (const auto& [metric, margin] : margins.of)
    node.members.emplace_back(metric, Node{.kind = Node::Kind::scalar, .text = Codec<double>::text(margin)});
  return flow_text(node);
}

experiment::Digests Codec<experiment::Digests>::read(const Node& node) {
  if (node.kind == Node::Kind::null) return {};
  if (node.kind != Node::Kind::mapping) unexpected(node, type());
  experiment::Digests digests;
  for (const auto& [path, digest] : node.members) digests.of[path] = Codec<std::string>::read(digest);
  return digests;
}

std::string Codec<experiment::Digests>::text(const experiment::Digests& digests) {
  Node node{.kind = Node::Kind::mapping};
  for (const auto& [path, digest] : digests.of)
    node.members.emplace_back(path, Node{.kind = Node::Kind::scalar, .text = digest, .quoted = true});
  return flow_text(node);
}

}  // namespace polyhead::config
