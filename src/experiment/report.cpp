#include "polyhead/experiment/report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

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

/// What `polyhead heads RUN ... --json` wrote beside a run.
struct HeadFile {
  const char *member, *what, *command;
};
constexpr HeadFile head_files[] = {
    {"importance", "The importance of heads", "heads importance RUN --json > RUN/importance.json"},
    {"masking", "Heads masked one at a time", "heads mask RUN --json > RUN/masking.json"},
    {"all_but_one", "All heads of a layer masked but one",
     "heads mask RUN --all-but-one --json > RUN/all_but_one.json"},
    {"curve", "Pruning curves", "heads curve RUN --json > RUN/curve.json"},
    {"heads", "What heads do, and how alike they are", "heads RUN --json > RUN/heads.json"},
};

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

void miss(Json& report, const std::string& what, const std::string& command) {
  report["missing"].push_back({{"what", what}, {"command", "polyhead " + command}});
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

Json experiment_report(const std::string& folder, int threads) {
  Json report = empty_report(folder);
  const Experiment experiment = load_experiment(folder + "/experiment.yaml", {}, "");
  const std::vector<Row> rows = read_rows(folder + "/results.jsonl");
  report["name"] = experiment.config.name;
  report["experiment"] = experiment_json(experiment, folder, rows, threads);
  const Json& cells = report["experiment"]["cells"];
  std::set<std::string> all, unfinished;
  for (const Json& cell : cells) {
    all.insert(cell["cell"]);
    if (cell["status"] != "finished") unfinished.insert(cell["cell"]);
  }
  report["facts"] = {"experiment", plural(all.size(), "trained model"),
                     plural(experiment.config.seeds.size(), "seed")};
  if (!unfinished.empty())
    report["warnings"].push_back(
        concat(plural(unfinished.size(), "model"),
               " diverged or failed: counted in the table of all points, and named below."));
  if (const Json& missing = report["experiment"]["bootstrap"]["missing"]; !missing.is_null())
    report["warnings"].push_back(missing);
  add_cell_curves(report, folder);
  if (rows.empty()) miss(report, "Results", concat("ablate ", folder, "/experiment.yaml --out ", folder));
  if (!rows.empty() && report["curves"].empty())
    miss(report, "Learning curves", concat("ablate ", folder, "/experiment.yaml --out ", folder));
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
  miss(report,
       "Attention weights (the files of data.test and data.valid are not where the configuration says)",
       "report " + report["folder"].get<std::string>());
}

Json read_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Json json = Json::parse(in, nullptr, false);
  require<FileError>(json.is_object(), path,
                     ": expected one JSON object, as polyhead heads --json writes it");
  return json;
}

void add_head_files(Json& report, const std::string& folder) {
  for (const HeadFile& file : head_files) {
    const std::string path = concat(folder, "/", file.member, ".json");
    if (fs::exists(path)) {
      report["heads"][file.member] = read_json(path);
      continue;
    }
    std::string command = file.command;
    for (std::size_t at = 0; (at = command.find("RUN", at)) != command.npos; at += folder.size())
      command.replace(at, 3, folder);
    miss(report, file.what, command);
  }
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
  add_head_files(report, folder);
  if (has_checkpoint(run))
    add_attention(report, train::load_model(folder), threads);
  else
    miss(report, "Attention weights (there is no checkpoint)",
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
