#include "polyhead/heads/head_set.h"

#include <algorithm>
#include <charconv>

#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

bool read_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= 0;
}

Head parse_head(std::string_view text, const nn::ModelConfig& model) {
  const std::vector<std::string_view> parts = split(text, '.');
  Head head;
  const auto kind =
      std::find(nn::attention_kind_names.begin(), nn::attention_kind_names.end(), parts.front());
  require(parts.size() == 3 && kind != nn::attention_kind_names.end() &&
              read_number(parts[1], head.site.layer) && read_number(parts[2], head.head),
          "head \"", text,
          "\", expected KIND.LAYER.HEAD such as encoder.0.3, KIND one of encoder, decoder, cross");
  head.site.kind = static_cast<nn::AttentionKind>(kind - nn::attention_kind_names.begin());
  const int layers = model.layers(head.site.kind);
  require(head.site.layer < layers, "head \"", text, "\": the model has ", layers, " layers of ", *kind,
          " attention, counted from 0");
  const int count = model.heads.at(head.site);
  require(head.head < count, "head \"", text, "\": the layer has ", count, " heads, counted from 0");
  return head;
}

struct SetsFile {
  std::vector<std::string> sets;

  template <class Visitor>
  void fields(Visitor& v) {
    v("sets", sets, "sets of heads, each encoder.0.3, cross.1.0, ...", config::not_empty());
  }
};

}  // namespace

std::string name(const Head& head) {
  return concat(nn::name(head.site.kind), '.', head.site.layer, '.', head.head);
}

std::string names(std::span<const Head> heads) {
  std::string text;
  for (const Head& head : heads) text += (text.empty() ? "" : ",") + name(head);
  return text;
}

std::vector<Head> parse_heads(std::string_view text, const nn::ModelConfig& model) {
  require(!trim(text).empty(), "no heads given, expected such as encoder.0.3,cross.1.0");
  std::vector<Head> heads;
  for (const std::string_view part : split(text, ',')) {
    const Head head = parse_head(part, model);
    require(std::find(heads.begin(), heads.end(), head) == heads.end(), "head \"", part, "\" given twice");
    heads.push_back(head);
  }
  return heads;
}

std::vector<std::vector<Head>> load_head_sets(const std::string& path, const nn::ModelConfig& model) {
  std::vector<std::vector<Head>> sets;
  for (const std::string& set : config::load<SetsFile>(path).sets) try {
      sets.push_back(parse_heads(set, model));
    } catch (const Error& error) {
      throw Error(concat(path, ": sets[", sets.size(), "]: ", error.what()));
    }
  return sets;
}

std::vector<Head> others(const Head& head, const nn::ModelConfig& model) {
  std::vector<Head> result;
  for (int other = 0; other < model.heads.at(head.site); ++other)
    if (other != head.head) result.push_back({head.site, other});
  return result;
}

}  // namespace polyhead::heads
