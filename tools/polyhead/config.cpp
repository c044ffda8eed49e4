#include "commands.h"
#include "configuration.h"
#include "files.h"
#include "polyhead/config/yaml.h"

namespace polyhead::tools {
namespace {

struct PrintedConfigOptions : ConfigOptions {
  bool keys = false;
};

int run_config(const PrintedConfigOptions& o) {
  write_output("", o.keys ? config::document<train::Config>() : config::dump(configuration(o)));
  return 0;
}

}  // namespace

Command add_config(CLI::App& program) {
  CLI::App* command = program.add_subcommand("config", "Print a configuration with every default, as YAML");
  auto o = std::make_shared<PrintedConfigOptions>();
  add_configuration(*command, *o);
  command->add_flag("--keys", o->keys, "a table of all keys with type, default and meaning instead");
  return {command, [o] { return run_config(*o); }};
}

}  // namespace polyhead::tools
