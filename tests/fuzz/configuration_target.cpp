#include <string>
#include <vector>

#include "polyhead/config/yaml.h"
#include "polyhead/train/config.h"
#include "targets.h"

namespace polyhead::fuzz {

void configuration(std::string_view input) {
  const std::string_view yaml = input.substr(0, input.find('\0'));
  std::vector<std::string> overrides;
  for (std::size_t at = yaml.size(); at < input.size();) {
    const std::size_t end = std::min(input.find('\0', at + 1), input.size());
    overrides.emplace_back(input.substr(at + 1, end - at - 1));
    at = end;
  }
  try {
    const auto config = config::parse<train::Config>(yaml, "input.yaml", overrides);
    const std::string text = config::dump(config);
    const auto again = config::parse<train::Config>(text, "dumped.yaml");
    expect(again == config && config::dump(again) == text, "what was dumped is another configuration");
  } catch (const Error& error) {
    expect(error.status() == Status::usage && error.what()[0] != '\0', "an error without a message");
  }
}

}  // namespace polyhead::fuzz
