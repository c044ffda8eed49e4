#include "polyhead/train/config.h"

#include "commands.h"
#include "default_config.h"
#include "files.h"
#include "polyhead/config/yaml.h"

namespace polyhead::tools {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  bool keys = false;
};

int run(const Options& o) {
  if (o.keys) {
    write_output("", config::document<train::Config>());
    return 0;
  }
  const auto config = o.config.empty() ? config::parse<train::Config>(
                                             default_config, "the default configuration", o.overrides)
                                       : config::load<train::Config>(o.config, o.overrides);
  write_output("", config::dump(config));
  return 0;
}

}  // namespace

Command add_config(CLI::App& program) {
  CLI::App* command = program.add_subcommand("config", "Print a configuration with every default, as YAML");
  auto o = std::make_shared<Options>();
  command->add_option("CONFIG", o->config,
                      "configuration; without one, the built-in toy task (configs/toy.yaml)");
  command->add_flag("--keys", o->keys, "a table of all keys with type, default and meaning instead");
  add_overrides(*command, o->overrides);
  return {command, [o] { return run(*o); }};
}

}  // namespace polyhead::tools
