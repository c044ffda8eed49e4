#include "polyhead/heads/gold_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "diagnostics.h"
#include "files.h"
#include "heads_lab.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;
using heads::GoldComparison;
using heads::OffsetScore;
using heads::RelationAgreement;
using heads::RelationBaseline;

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

/// What there is to say about the heads of a model on one text.
struct Report {
  std::optional<GoldComparison> gold;  ///< where the task has gold annotations
  heads::Diagnostics diagnostics;
};

Json relations_json(const GoldComparison& comparison, std::size_t head) {
  Json relations = Json::object();
  for (std::size_t r = 0; r < comparison.relations.size(); ++r)
    if (const auto& agreement = comparison.agreements[head][r])
      relations[std::string(name(comparison.relations[r].relation))] =
          relation_json(*agreement, comparison.relations[r]);
  return relations;
}

std::string report_json(const MeasureOptions& o, const train::LoadedModel& loaded, std::size_t pairs,
                        const Report& report) {
  Json json{{"checkpoint", loaded.path}, {"step", loaded.step}, {"split", o.split}, {"pairs", pairs}};
  json["heads"] = Json::array();
  for (std::size_t h = 0; h < report.diagnostics.heads.size(); ++h) {
    const heads::HeadDiagnostics& diagnostics = report.diagnostics.heads[h];
    json["heads"].push_back({{"kind", name(diagnostics.head.site.kind)},
                             {"layer", diagnostics.head.site.layer},
                             {"head", diagnostics.head.head},
                             {"relations", report.gold ? relations_json(*report.gold, h) : Json::object()},
                             {"diagnostics", head_json(diagnostics)}});
  }
  json["warnings"] = warnings_json(heads::warnings(report.diagnostics));
  json["similarity"] = similarity_json(report.diagnostics);
  json["rollout"] = rollout_json(report.diagnostics);
  return json.dump() + '\n';
}

/// A column of the table: one figure of every head of a kind.
struct GoldColumn {
  std::string title;
  std::size_t relation;
  bool error_rate;
};

std::vector<GoldColumn> columns_of(const GoldComparison& comparison, std::size_t head) {
  std::vector<GoldColumn> columns;
  for (std::size_t r = 0; r < comparison.relations.size(); ++r) {
    if (!comparison.agreements[head][r]) continue;
    const std::string title(name(comparison.relations[r].relation));
    columns.push_back({title, r, false});
    if (comparison.relations[r].error_rate) columns.push_back({title + " AER", r, true});
  }
  return columns;
}

std::string cell(const GoldColumn& column, const std::string& text) {
  return fmt::format("  {:>{}}", text, std::max<std::size_t>(column.title.size(), 12));
}

std::string head_row(const GoldComparison& comparison, std::size_t h,
                     const std::vector<GoldColumn>& columns) {
  const heads::Head& head = comparison.heads[h];
  std::string row = fmt::format("{:7}  {:>5}  {:>4}", name(head.site.kind), head.site.layer, head.head);
  for (const GoldColumn& c : columns) {
    const RelationAgreement& agreement = *comparison.agreements[h][c.relation];
    row += cell(
        c, fmt::format("{:.4f}", c.error_rate ? agreement.alignment.error_rate() : agreement.edges.mass()));
  }
  return row + '\n';
}

std::string baseline_row(const GoldComparison& comparison, const std::vector<GoldColumn>& columns) {
  std::string row = fmt::format("{:20}", "best fixed offset");
  for (const GoldColumn& c : columns) {
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
    const std::vector<GoldColumn> columns = columns_of(comparison, h);
    if (columns.empty()) continue;
    if (h == 0 || comparison.heads[h - 1].site.kind != kind) {
      table += fmt::format("{}{:7}  {:5}  {:4}", table.empty() ? "" : "\n", "kind", "layer", "head");
      for (const GoldColumn& c : columns) table += cell(c, c.title);
      table += '\n';
    }
    table += head_row(comparison, h, columns);
    if (h + 1 == comparison.heads.size() || comparison.heads[h + 1].site.kind != kind)
      table += baseline_row(comparison, columns);
  }
  return table;
}

int run(const MeasureOptions& o) {
  const train::LoadedModel loaded = load(o, {});
  const heads::Text text = load_text(o, loaded);
  const std::vector<decode::TokenPair> ids = text.ids();
  const std::string problem = heads::gold_problem(text.pairs, ids);
  if (!problem.empty()) complain("no comparison with gold annotations: " + problem);
  SentenceProgress progress("read", static_cast<std::int64_t>(ids.size()) * (problem.empty() ? 3 : 2));
  const auto read = [&](std::int64_t n) { progress.add(n); };
  Report report;
  if (problem.empty())
    report.gold = heads::compare_with_gold(*loaded.model, text.pairs, ids, o.threads, read);
  report.diagnostics = heads::diagnose(*loaded.model, loaded.pipeline, ids, o.threads, read);
  progress.end();
  write_output("", o.json ? report_json(o, loaded, ids.size(), report)
                          : (report.gold ? comparison_table(*report.gold) + '\n' : "") +
                                diagnostics_table(report.diagnostics));
  return 0;
}

}  // namespace

Command add_heads(CLI::App& program) {
  CLI::App* command = program.add_subcommand("heads",
                                             "Say what every attention head does: entropy, confidence, "
                                             "offsets, norms, gradients and more, with warnings, and "
                                             "where a task has gold alignment and dependencies, the mean "
                                             "weight on gold partners and the alignment error rate "
                                             "(AER) beside the best fixed offset");
  auto o = std::make_shared<MeasureOptions>();
  add_measuring(*command, *o);
  const std::vector<Command> lab = add_heads_lab(*command);
  command->require_subcommand(0, 1);
  command->get_option("MODEL")->required(false);  // the sub-commands have their own
  return {command, [o, lab] {
            for (const Command& chosen : lab)
              if (chosen.app->parsed()) return chosen.run();
            require(!o->model.empty(), "MODEL is required; see polyhead heads --help");
            return run(*o);
          }};
}

}  // namespace polyhead::tools
