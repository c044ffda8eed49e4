#include "polyhead/heads/gold_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "model.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;
using heads::GoldComparison;
using heads::OffsetScore;
using heads::RelationAgreement;
using heads::RelationBaseline;

struct Options : ModelOptions {
  std::string split;
  std::int64_t limit = 0;
  bool json = false;
};

Json offset_json(const OffsetScore& baseline, const char* score) {
  return {{"offset", baseline.offset}, {score, baseline.score}};
}

Json relation_json(const RelationAgreement& agreement, const RelationBaseline& baseline) {
  Json json{{"tokens", agreement.edges.tokens()},
            {"mass", agreement.edges.mass()},
            {"baseline", offset_json(baseline.edges.mass(), "mass")}};
  if (baseline.error_rate) {
    json["error_rate"] = agreement.alignment.error_rate();
    json["baseline"]["error_rate"] = offset_json(*baseline.error_rate, "error_rate");
  }
  for (const auto& [label, counts] : agreement.edges.labels())
    json["labels"][std::string(label)] = {{"tokens", counts.tokens},
                                          {"share", counts.share()},
                                          {"baseline", offset_json(baseline.edges.share(label), "share")}};
  return json;
}

std::string comparison_json(const Options& o, const train::LoadedModel& loaded, std::size_t pairs,
                            const GoldComparison& comparison) {
  Json report{{"checkpoint", loaded.path}, {"step", loaded.step}, {"split", o.split}, {"pairs", pairs}};
  report["heads"] = Json::array();
  for (std::size_t h = 0; h < comparison.heads.size(); ++h) {
    const heads::Head& head = comparison.heads[h];
    Json entry{{"kind", name(head.site.kind)},
               {"layer", head.site.layer},
               {"head", head.head},
               {"relations", Json::object()}};
    for (std::size_t r = 0; r < comparison.relations.size(); ++r)
      if (const auto& agreement = comparison.agreements[h][r])
        entry["relations"][std::string(name(comparison.relations[r].relation))] =
            relation_json(*agreement, comparison.relations[r]);
    report["heads"].push_back(std::move(entry));
  }
  return report.dump() + '\n';
}

/// A column of the table: one figure of every head of a kind.
struct Column {
  std::string title;
  std::size_t relation;
  bool error_rate;
};

std::vector<Column> columns_of(const GoldComparison& comparison, std::size_t head) {
  std::vector<Column> columns;
  for (std::size_t r = 0; r < comparison.relations.size(); ++r) {
    if (!comparison.agreements[head][r]) continue;
    const std::string title(name(comparison.relations[r].relation));
    columns.push_back({title, r, false});
    if (comparison.relations[r].error_rate) columns.push_back({title + " AER", r, true});
  }
  return columns;
}

std::string cell(const Column& column, const std::string& text) {
  return fmt::format("  {:>{}}", text, std::max<std::size_t>(column.title.size(), 12));
}

std::string head_row(const GoldComparison& comparison, std::size_t h, const std::vector<Column>& columns) {
  const heads::Head& head = comparison.heads[h];
  std::string row = fmt::format("{:7}  {:>5}  {:>4}", name(head.site.kind), head.site.layer, head.head);
  for (const Column& c : columns) {
    const RelationAgreement& agreement = *comparison.agreements[h][c.relation];
    row += cell(
        c, fmt::format("{:.4f}", c.error_rate ? agreement.alignment.error_rate() : agreement.edges.mass()));
  }
  return row + '\n';
}

std::string baseline_row(const GoldComparison& comparison, const std::vector<Column>& columns) {
  std::string row = fmt::format("{:20}", "best fixed offset");
  for (const Column& c : columns) {
    const RelationBaseline& baseline = comparison.relations[c.relation];
    const OffsetScore best = c.error_rate ? *baseline.error_rate : baseline.edges.mass();
    row += cell(c, fmt::format("{:+d}: {:.4f}", best.offset, best.score));
  }
  return row + '\n';
}

/// A block for each kind of attention: a row a head, and last what the best fixed offset does.
std::string comparison_table(const GoldComparison& comparison) {
  std::string table;
  for (std::size_t h = 0; h < comparison.heads.size(); ++h) {
    const auto kind = comparison.heads[h].site.kind;
    const std::vector<Column> columns = columns_of(comparison, h);
    if (columns.empty()) continue;
    if (h == 0 || comparison.heads[h - 1].site.kind != kind) {
      table += fmt::format("{}{:7}  {:5}  {:4}", table.empty() ? "" : "\n", "kind", "layer", "head");
      for (const Column& c : columns) table += cell(c, c.title);
      table += '\n';
    }
    table += head_row(comparison, h, columns);
    if (h + 1 == comparison.heads.size() || comparison.heads[h + 1].site.kind != kind)
      table += baseline_row(comparison, columns);
  }
  return table;
}

int run(const Options& o) {
  const train::LoadedModel loaded = load(o, {});
  const heads::AnnotatedPairs pairs =
      heads::load_annotated(loaded.config.data, split_of(o.split), loaded.config.seed, loaded.pipeline,
                            loaded.config.model.max_length, o.limit);
  if (pairs.too_long > 0)
    complain(concat(pairs.too_long, " pairs of more than ", loaded.config.model.max_length,
                    " tokens, left out (model.max_length)"));
  SentenceProgress progress("read", static_cast<std::int64_t>(pairs.pairs.size()));
  const GoldComparison comparison =
      heads::compare_with_gold(*loaded.model, pairs, o.threads, [&](std::int64_t n) { progress.add(n); });
  progress.end();
  write_output(
      "", o.json ? comparison_json(o, loaded, pairs.pairs.size(), comparison) : comparison_table(comparison));
  return 0;
}

}  // namespace

Command add_heads(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "heads",
      "Compare every attention head with the gold alignment and dependencies of a toy task: the mean weight "
      "on "
      "gold partners, and the alignment error rate (AER) of cross-attention, beside the best fixed offset");
  auto o = std::make_shared<Options>();
  add_model(*command, *o);
  add_split(*command, o->split);
  command->add_option("--limit", o->limit, "read only so many pairs of the split, its first")
      ->check(CLI::PositiveNumber);
  command->add_flag(
      "--json", o->json,
      "one JSON object in full precision, with the share of each dependency label that a head finds");
  return {command, [o] { return run(*o); }};
}

}  // namespace polyhead::tools
