#include "rows.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
#include "polyhead/experiment/results.h"

namespace polyhead::experiment {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const config::Node& node) {
  switch (node.kind) {
    case config::Node::Kind::scalar: {
      // Numbers, true and false are written in YAML as in JSON, or are text.
      Json value = node.quoted ? Json(Json::value_t::discarded) : Json::parse(node.text, nullptr, false);
      return value.is_number() || value.is_boolean() ? value : Json(node.text);
    }
    case config::Node::Kind::sequence: {
      Json list = Json::array();
      for (const config::Node& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case config::Node::Kind::mapping: {
      Json object = Json::object();
      for (const auto& [key, value] : node.members) object[key] = json_of(value);
      return object;
    }
    default:
      return nullptr;
  }
}

template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const Row& row) {
  Json grid = Json::object();
  for (const auto& [key, value] : row.grid) grid[key] = Json::parse(value);
  const Measure none, &m = row.measure ? *row.measure : none;
  const Outcome& o = row.outcome;
  const auto name = [&](const std::string& text) { return row.measure ? Json(text) : Json(nullptr); };
  return {{"cell", row.cell},
          {"base", row.base},
          {"grid", std::move(grid)},
          {"control", row.control},
          {"trial", json_of(row.trial)},
          {"seed", row.seed},
          {"split", name(m.split)},
          {"metric", name(m.metric)},
          {"phenomenon", json_of(m.phenomenon)},
          {"value", json_of(m.value)},
          {"low", json_of(m.low)},
          {"high", json_of(m.high)},
          {"n", json_of(m.n)},
          {"limit", json_of(m.limit)},
          {"status", config::Codec<Status>::text(o.status)},
          {"message", json_of(o.message)},
          {"parameters", o.costs.parameters},
          {"flops_per_token", number(o.costs.flops_per_token)},
          {"score_bytes", number(o.costs.score_bytes)},
          {"learning_rate", number(o.learning_rate)},
          {"step", o.step},
          {"tokens_per_second", number(o.tokens_per_second)},
          {"train_seconds", number(o.train_seconds)},
          {"evaluate_seconds", number(o.evaluate_seconds)}};
}

template <class T>
std::optional<T> optional_of(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

Row row_of(const Json& json) {
  Row row{.cell = json.at("cell"), .base = json.at("base")};
  for (const auto& [key, value] : json.at("grid").items()) row.grid.emplace_back(key, value.dump());
  row.control = json.at("control");
  row.trial = optional_of<double>(json, "trial");
  row.seed = json.at("seed");
  if (!json.at("split").is_null())
    row.measure = Measure{.split = json.at("split"),
                          .metric = json.at("metric"),
                          .phenomenon = optional_of<std::string>(json, "phenomenon"),
                          .value = optional_of<double>(json, "value"),
                          .low = optional_of<double>(json, "low"),
                          .high = optional_of<double>(json, "high"),
                          .n = optional_of<std::int64_t>(json, "n"),
                          .limit = optional_of<int>(json, "limit")};
  Outcome& o = row.outcome;
  const std::string status = json.at("status");
  for (const auto& [value, name] : enum_names(Status{}))
    if (name == status) o.status = value;
  o.message = optional_of<std::string>(json, "message");
  o.costs.parameters = json.at("parameters");
  o.costs.flops_per_token = optional_of<double>(json, "flops_per_token").value_or(0);
  o.costs.score_bytes = optional_of<double>(json, "score_bytes").value_or(0);
  o.learning_rate = optional_of<double>(json, "learning_rate").value_or(0);
  o.step = json.at("step");
  o.tokens_per_second = optional_of<double>(json, "tokens_per_second").value_or(0);
  o.train_seconds = optional_of<double>(json, "train_seconds").value_or(0);
  o.evaluate_seconds = optional_of<double>(json, "evaluate_seconds").value_or(0);
  return row;
}

/// A field of comma-separated values as RFC 4180 has it.
std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string json_text(const config::Node& node) { return json_of(node).dump(); }

std::vector<Row> read_rows(const std::string& path) {
  std::vector<Row> rows;
  if (!std::filesystem::exists(path)) return rows;
  const std::vector<std::byte> bytes = read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++line;
    try {
      rows.push_back(row_of(Json::parse(text.substr(begin, end - begin))));
    } catch (const Json::exception&) {
      throw FileError(
          concat(path, ":", line, ": not a row of results; expected the file as the program wrote it"));
    }
    begin = end + 1;
  }
  return rows;
}

std::string to_jsonl(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) text += json_of(row).dump() + "\n";
  return text;
}

std::string to_csv(const std::vector<Row>& rows) {
  std::vector<std::string> keys;
  for (const Row& row : rows)
    for (const auto& [key, value] : row.grid)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  std::string text;
  for (const std::string& key : keys) text += csv_field(key) + ",";
  const Json names = json_of(Row{});
  for (const auto& [name, value] : names.items())
    if (name != "grid") text += name + (name == "evaluate_seconds" ? "\n" : ",");
  for (const Row& row : rows) {
    const Json json = json_of(row);
    for (const std::string& key : keys) text += csv_field(json["grid"].value(key, Json())) + ",";
    for (const auto& [name, value] : json.items())
      if (name != "grid") text += csv_field(value) + (name == "evaluate_seconds" ? "\n" : ",");
  }
  return text;
}

}  // namespace polyhead::experiment
