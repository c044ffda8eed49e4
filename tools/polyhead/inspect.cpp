#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "polyhead/train/model_file.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string model;
  bool json = false;
};

Json shape_of(const train::NamedArray& array) {
  Json shape = Json::array();
  for (int i = 0; i < array.shape.rank(); ++i) shape.push_back(array.shape[i]);
  return shape;
}

Json describe(const std::string& path, const train::Checkpoint& checkpoint) {
  const text::TextPipeline pipeline = train::pipeline_of(checkpoint);
  Json parameters = Json::array();
  std::int64_t count = 0;
  for (const train::NamedArray& p : checkpoint.parameters) {
    parameters.push_back({{"path", p.path}, {"shape", shape_of(p)}, {"count", p.shape.size()}});
    count += p.shape.size();
  }
  return {{"checkpoint", path},
          {"step", checkpoint.step},
          {"epoch", checkpoint.epoch},
          {"state", Json::parse(checkpoint.state, nullptr, false)},
          {"has_ema", !checkpoint.ema.empty()},
          {"has_optimizer", !checkpoint.first_moment.empty()},
          {"vocabulary",
           {{"kind", pipeline.source().kind()},
            {"shared", pipeline.shared()},
            {"source_size", pipeline.source().size()},
            {"target_size", pipeline.target().size()}}},
          {"parameter_count", count},
          {"parameters", parameters},
          {"config", checkpoint.config}};
}

std::string text_of(const Json& d) {
  const Json& v = d["vocabulary"];
  std::string text = fmt::format(
      "checkpoint  {}\nstep        {}\nepoch       {}\nvocabulary  {}, {}\nholds       parameters{}{}\n",
      d["checkpoint"].get<std::string>(), d["step"].get<std::int64_t>(), d["epoch"].get<std::int64_t>(),
      v["kind"].get<std::string>(),
      v["shared"].get<bool>() ? v["source_size"].dump() + " pieces, shared"
                              : v["source_size"].dump() + " and " + v["target_size"].dump() + " pieces",
      d["has_ema"].get<bool>() ? ", moving average" : "",
      d["has_optimizer"].get<bool>() ? ", optimizer moments" : "");
  text += "\nstate\n";
  for (const auto& [key, value] : d["state"].items()) text += fmt::format("  {}: {}\n", key, value.dump());
  text += fmt::format("\nparameters  {}\n", d["parameter_count"].get<std::int64_t>());
  for (const Json& p : d["parameters"])
    text += fmt::format("  {:55} {:>14} {:>10}\n", p["path"].get<std::string>(), p["shape"].dump(),
                        p["count"].get<std::int64_t>());
  return text + "\nconfig\n" + d["config"].get<std::string>();
}

int run_inspect(const InspectOptions& o) {
  const train::OpenedCheckpoint opened = train::open_checkpoint(o.model);
  if (!opened.damaged.empty()) complain(opened.damaged);
  const Json description = describe(opened.path, opened.checkpoint);
  write_output("", o.json ? description.dump() + '\n' : text_of(description));
  return 0;
}

}  // namespace

Command add_inspect(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "inspect", "Show what a checkpoint holds: configuration, parameters, training state");
  auto o = std::make_shared<InspectOptions>();
  command->add_option("MODEL", o->model, "checkpoint, or run folder (its best, else its last)")
      ->required()
      ->type_name("RUN|CHECKPOINT");
  command->add_flag("--json", o->json, "one JSON object");
  return {command, [o] { return run_inspect(*o); }};
}

}  // namespace polyhead::tools
