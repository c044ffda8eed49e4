#include "polyhead/experiment/report.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"
#include "polyhead/core/version.h"
#include "polyhead/heads/attention_maps.h"
#include "polyhead/ops/hard_concrete.h"
#include "polyhead/train/head_gates.h"
#include "polyhead/train/run_folder.h"
#include "report_parts.h"

namespace polyhead::experiment {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json empty_report(const std::string& path) {
  const fs::path folder = fs::path(path).lexically_normal();
  const std::string name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  return {{"name", name.empty() ? path : name},
          {"version", version},
          {"folder", path},
          {"facts", Json::array()},
          {"warnings", Json::array()},
          {"missing", Json::array()},
          {"curves", Json::array()}};
}

std::string plural(std::size_t count, const std::string& what) {
  return concat(count, " ", what, count == 1 ? "" : "s");
}

// ---------------------------------------------------------------- experiments

void add_cell_curves(Json& report, const std::string& folder) {
  std::set<std::string> seen;
  for (const Json& cell : report["experiment"]["cells"]) {
    const std::string id = cell["cell"], log = train::RunFolder(concat(folder, "/cells/", id)).log();
    if (!fs::exists(log) || !seen.insert(id).second) continue;
    Json curve = curve_json(log);
    curve["name"] = id;
    for (const char* member : {"grid", "control", "seed"}) curve[member] = cell[member];
    report["curves"].push_back(std::move(curve));
  }
}

/// How many models there are, and what became of them.
void add_models(Json& report, const Json& cells) {
  std::map<std::string, std::set<std::string>> by_status;
  for (const Json& cell : cells) by_status[cell["status"]].insert(cell["cell"]);
  report["facts"] = {"experiment", plural(by_status["finished"].size(), "trained model")};
  std::string bad;
  for (const char* status : {"diverged", "failed"}) {
    const std::size_t count = by_status[status].size();
    if (count == 0) continue;
    report["facts"].push_back(concat(count, " ", status));
    bad += concat(bad.empty() ? "" : ", ", plural(count, "model"), " ", status);
  }
  if (!bad.empty())
    report["warnings"].push_back(bad + ": counted in the table of all points, and named below");
}

Json experiment_report(const std::string& folder, int threads) {
  Json report = empty_report(folder);
  const Experiment experiment = load_experiment(folder + "/experiment.yaml", {}, "");
  const std::vector<Row> rows = read_rows(folder + "/results.jsonl");
  report["name"] = experiment.config.name;
  report["experiment"] = experiment_json(experiment, folder, rows, threads);
  add_models(report, report["experiment"]["cells"]);
  report["facts"].push_back(plural(experiment.config.seeds.size(), "seed"));
  if (const Json& unfinished = report["experiment"]["unfinished"]; !unfinished.is_null())
    report["warnings"].push_back(unfinished);
  if (const Json& missing = report["experiment"]["bootstrap"]["missing"]; !missing.is_null())
    report["warnings"].push_back(missing);
  add_cell_curves(report, folder);
  if (rows.empty())
    add_missing(report, "Results", concat("ablate ", folder, "/experiment.yaml --out ", folder));
  if (!rows.empty() && report["curves"].empty())
    add_missing(report, "Learning curves", concat("ablate ", folder, "/experiment.yaml --out ", folder));
  return report;
}

// ---------------------------------------------------------------- runs and checkpoints

void add_model_facts(Json& report, const train::Config& config) {
  const nn::ModelConfig& m = config.model;
  report["facts"].push_back("task " + config.data.task);
  report["facts"].push_back(concat(m.encoder_layers, " + ", m.decoder_layers, " layers"));
  report["facts"].push_back(concat(m.heads, " heads"));
  report["facts"].push_back(concat("d_model ", m.d_model));
  report["facts"].push_back(concat("seed ", config.seed));
}

/// The learned gate ξ of every head, where there are some.
void add_gates(Json& report, const nn::Transformer& model) {
  Json gates = Json::array();
  for (const heads::Head& head : heads::all_heads(model.config()))
    for (const nn::Parameter& p : model.parameters().parameters())
      if (p.path == train::gates_path(head.site))
        gates.push_back(
            {{"kind", name(head.site.kind)},
             {"layer", head.site.layer},
             {"head", head.head},
             {"gate", ops::HardConcrete::value(model.parameters().value(p).as<float>()[head.head])}});
  if (!gates.empty()) report["heads"]["gates"] = {{"heads", std::move(gates)}};
}

void add_attention(Json& report, const train::LoadedModel& loaded, int threads) {
  add_gates(report, *loaded.model);
  report["attention"] = attention_json(loaded, threads);
  report["facts"].push_back(concat("update ", loaded.step));
  if (!report["attention"].is_null()) return;
  report.erase("attention");
  add_missing(
      report,
      "Attention weights (the files of data.test and data.valid are not where the configuration says)",
      "report " + report["folder"].get<std::string>());
}

bool has_checkpoint(const train::RunFolder& run) {
  std::error_code none;
  const fs::directory_iterator files(run.checkpoints(), none);
  return std::any_of(begin(files), end(files), [](const auto& f) { return f.path().extension() == ".h5"; });
}

Json run_report(const std::string& folder, int threads) {
  const train::RunFolder run(folder);
  Json report = empty_report(folder);
  report["facts"].push_back("run");
  if (fs::exists(run.config())) {
    const auto config = config::load<train::Config>(run.config());
    report["name"] = config.name;
    add_model_facts(report, config);
  }
  if (fs::exists(run.log())) {
    Json curve = curve_json(run.log());
    curve["name"] = report["name"];
    report["curves"].push_back(std::move(curve));
  }
  std::optional<train::LoadedModel> loaded;
  if (has_checkpoint(run)) loaded = train::load_model(folder);
  add_head_files(report, folder, loaded ? &*loaded : nullptr);
  if (loaded)
    add_attention(report, *loaded, threads);
  else
    add_missing(report, "Attention weights (there is no checkpoint)",
                concat("train ", run.config(), " --out ", folder, " --resume"));
  return report;
}

Json checkpoint_report(const std::string& path, int threads) {
  const train::LoadedModel loaded = train::load_model(path);
  Json report = empty_report(path);
  report["facts"].push_back("checkpoint");
  add_model_facts(report, loaded.config);
  add_attention(report, loaded, threads);
  return report;
}

}  // namespace

void add_missing(Json& report, const std::string& what, const std::string& command) {
  report["missing"].push_back({{"what", what}, {"command", "polyhead " + command}});
}

std::string report_data(const std::string& path, int threads) {
  Json report;
  require<FileError>(fs::exists(path), path, ": no such file or folder");
  if (!fs::is_directory(path))
    report = checkpoint_report(path, threads);
  else if (fs::exists(path + "/experiment.yaml"))
    report = experiment_report(path, threads);
  else if (train::RunFolder(path).exists())
    report = run_report(path, threads);
  else
    throw FileError(
        path +
        ": neither an experiment (experiment.yaml, results.jsonl) nor a run (config.yaml, train.jsonl, "
        "checkpoints)");
  return report.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace polyhead::experiment
