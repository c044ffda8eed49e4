#include "json_shape.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "polyhead/core/error.h"
#include "polyhead/nn/attention/site.h"

namespace polyhead::experiment {
namespace {

using Json = nlohmann::ordered_json;

/// Layers and heads are below it, so that what is drawn for each up to the last has an end.
constexpr int most_heads = 1000;

bool is_index(const Json& json) { return json.is_number_integer() && json >= 0 && json < most_heads; }

bool is_kind(std::string_view text) {
  return std::any_of(nn::attention_kinds.begin(), nn::attention_kinds.end(),
                     [&](nn::AttentionKind kind) { return nn::name(kind) == text; });
}

bool is_index(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 && value < most_heads;
}

/// "encoder.0.3"
bool is_head(std::string_view text) {
  const auto first = text.find('.'), last = text.rfind('.');
  return first < last && last != text.npos && is_kind(text.substr(0, first)) &&
         is_index(text.substr(first + 1, last - first - 1)) && is_index(text.substr(last + 1));
}

bool are_heads(std::string_view text) {
  const auto comma = text.find(',');
  return is_head(text.substr(0, comma)) && (comma == text.npos || are_heads(text.substr(comma + 1)));
}

struct Type {
  const char* name;
  bool (*has)(const Json& json);
};
/// JSON has null for numbers that are not finite.
constexpr Type types[] = {
    {"a number", [](const Json& json) { return json.is_number() || json.is_null(); }},
    {"a count", [](const Json& json) { return json.is_number_integer() && json >= 0; }},
    {"a whole number from 0 to 999", [](const Json& json) { return is_index(json); }},
    {"text", [](const Json& json) { return json.is_string(); }},
    {"text or null", [](const Json& json) { return json.is_string() || json.is_null(); }},
    {"true or false", [](const Json& json) { return json.is_boolean(); }},
    {"encoder, decoder or cross",
     [](const Json& json) { return json.is_string() && is_kind(json.get_ref<const std::string&>()); }},
    {"heads such as encoder.0.3",
     [](const Json& json) { return json.is_string() && are_heads(json.get_ref<const std::string&>()); }},
    {"all but a head such as encoder.0.3",
     [](const Json& json) {
       constexpr std::string_view begin = "all but ";
       const std::string_view text =
           json.is_string() ? json.get_ref<const std::string&>() : std::string_view();
       return text.starts_with(begin) && is_head(text.substr(begin.size()));
     }},
};

std::string given(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return json.empty() ? "an empty list" : "a list";
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

std::string wrong(const Json& json, const std::string& where, const std::string& expected) {
  return concat(where.empty() ? "it" : where, " is ", given(json), ", expected ", expected);
}

std::string problem(const Json& json, const Json& shape, const std::string& where);

std::string member_problem(const Json& json, const Json& shape, const std::string& where) {
  const std::string before = where.empty() ? "" : where + ".";
  for (const auto& [key, of] : shape.items()) {
    if (key == "*") continue;
    const bool optional = key.ends_with('?');
    const std::string name = key.substr(0, key.size() - (optional ? 1 : 0));
    const auto member = json.find(name);
    if (member == json.end() && !optional) return before + name + " is missing";
    if (member == json.end()) continue;
    if (std::string found = problem(*member, of, before + name); !found.empty()) return found;
  }
  if (const auto others = shape.find("*"); others != shape.end())
    for (const auto& [name, member] : json.items())
      if (!shape.contains(name) && !shape.contains(name + "?"))
        if (std::string found = problem(member, *others, before + name); !found.empty()) return found;
  return "";
}

std::string problem(const Json& json, const Json& shape, const std::string& where) {
  if (shape.is_object()) {
    if (!json.is_object()) return wrong(json, where, "an object");
    return member_problem(json, shape, where);
  }
  if (shape.is_array()) {
    if (!json.is_array()) return wrong(json, where, "a list");
    if (json.empty() && shape.size() > 1) return wrong(json, where, "one element at least");
    for (std::size_t i = 0; i < json.size(); ++i)
      if (std::string found = problem(json[i], shape[0], concat(where, "[", i, "]")); !found.empty())
        return found;
    return "";
  }
  const auto type = std::find_if(std::begin(types), std::end(types), [&](const Type& known) {
    return shape.get_ref<const std::string&>() == known.name;
  });
  return type->has(json) ? "" : wrong(json, where, type->name);
}

}  // namespace

std::string shape_problem(const Json& json, std::string_view shape) {
  return problem(json, Json::parse(shape), "");
}

}  // namespace polyhead::experiment
