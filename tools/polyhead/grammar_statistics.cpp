#include "grammar_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace polyhead::tools {
namespace {

template <class Counts>
std::string counts_line(const std::string& split, const Counts& counts) {
  std::string line = fmt::format("{:18}", split);
  for (const auto& [value, count] : counts) line += fmt::format(" {}:{}", value, count);
  return line + '\n';
}

/// Words from the most frequent to the rarest.
std::string words_lines(const std::string& title, const std::map<std::string, std::int64_t>& words) {
  std::vector<std::pair<std::string, std::int64_t>> sorted(words.begin(), words.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = fmt::format("\n{}: {} words\n", title, words.size());
  std::size_t column = 0;
  for (const auto& [word, count] : sorted) {
    const std::string cell = fmt::format("{}:{}", word, count);
    column += cell.size() + 1;
    if (column > 110) {
      text += '\n';
      column = cell.size() + 1;
    }
    text += cell + ' ';
  }
  return text + '\n';
}

template <class Counts>
nlohmann::ordered_json counts_json(const Counts& counts) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [value, count] : counts) object[fmt::format("{}", value)] = count;
  return object;
}

}  // namespace

void GrammarStatistics::add(const data::Pair& pair) {
  ++pairs;
  std::array<bool, data::phenomenon_names.size()> holds{};
  for (const data::Probe& probe : pair.probes) {
    holds[static_cast<std::size_t>(probe.phenomenon)] = true;
    if (probe.phenomenon == data::Phenomenon::agreement) ++distances[probe.distance];
  }
  for (std::size_t i = 0; i < holds.size(); ++i) phenomena[i] += holds[i] ? 1 : 0;
  ++source_lengths[pair.source.size()];
  ++target_lengths[pair.target.size()];
  ++depths[pair.depth];
  ++attractors[pair.attractors];
  for (const std::string& word : pair.source) ++source_words[word];
  for (const std::string& word : pair.target) ++target_words[word];
}

std::string statistics_table(const std::vector<GrammarStatistics>& splits) {
  std::string text = fmt::format("percent of pairs    {:>7}", "pairs");
  for (const std::string_view name : data::phenomenon_names) text += fmt::format(" {:>10}", name);
  text += '\n';
  for (const GrammarStatistics& s : splits) {
    text += fmt::format("{:18}  {:7}", s.split, s.pairs);
    for (const std::int64_t count : s.phenomena)
      text += fmt::format(" {:10.1f}", 100.0 * static_cast<double>(count) / static_cast<double>(s.pairs));
    text += '\n';
  }
  const auto section = [&](const char* title, const auto& counts_of) {
    text += fmt::format("\n{}\n", title);
    for (const GrammarStatistics& s : splits) text += counts_line(s.split, counts_of(s));
  };
  section("pairs by source tokens", [](const auto& s) { return s.source_lengths; });
  section("pairs by target tokens", [](const auto& s) { return s.target_lengths; });
  section("pairs by depth", [](const auto& s) { return s.depths; });
  section("pairs by attractors", [](const auto& s) { return s.attractors; });
  section("subjects and verbs by distance", [](const auto& s) { return s.distances; });
  for (const GrammarStatistics& s : splits) {
    text += words_lines(s.split + ", source", s.source_words);
    text += words_lines(s.split + ", target", s.target_words);
  }
  return text;
}

std::string statistics_json(const std::vector<GrammarStatistics>& splits) {
  auto report = nlohmann::ordered_json::object();
  for (const GrammarStatistics& s : splits) {
    auto& row = report[s.split];
    row["pairs"] = s.pairs;
    for (std::size_t i = 0; i < s.phenomena.size(); ++i)
      row["phenomena"][std::string(data::phenomenon_names[i])] = s.phenomena[i];
    row["source_lengths"] = counts_json(s.source_lengths);
    row["target_lengths"] = counts_json(s.target_lengths);
    row["depths"] = counts_json(s.depths);
    row["attractors"] = counts_json(s.attractors);
    row["distances"] = counts_json(s.distances);
    row["source_words"] = counts_json(s.source_words);
    row["target_words"] = counts_json(s.target_words);
  }
  return report.dump() + '\n';
}

}  // namespace polyhead::tools
