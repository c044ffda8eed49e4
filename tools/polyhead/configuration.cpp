#include "configuration.h"

#include "commands.h"
#include "default_config.h"
#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"

namespace polyhead::tools {

void add_configuration(CLI::App& command, ConfigOptions& options) {
  command.add_option("CONFIG", options.config,
                     "configuration; without one, the toy translation language (configs/grammar.yaml)");
  add_overrides(command, options.overrides);
}

train::Config configuration(const ConfigOptions& o) {
  if (!o.config.empty()) return config::load<train::Config>(o.config, o.overrides);
  return config::parse<train::Config>(default_config, "the default configuration", o.overrides);
}

std::string run_folder(const std::string& out, const std::string& name) {
  if (!out.empty()) return out;
  const bool leads_elsewhere = name.find('/') != name.npos || name == "." || name == "..";
  require(!leads_elsewhere, "name: ", config::quoted_text(name),
          ", expected a name that a folder in runs/ can have, or --out");
  return "runs/" + name;
}

}  // namespace polyhead::tools
