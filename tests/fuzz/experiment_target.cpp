#include <string>

#include "memory_file.h"
#include "polyhead/experiment/cells.h"
#include "polyhead/experiment/results.h"
#include "targets.h"

namespace polyhead::fuzz {
namespace {

void read_experiment(std::string_view yaml) {
  const MemoryFile file(yaml);
  const experiment::Experiment read = experiment::load_experiment(file.path(), {}, "");
  const std::string text = experiment::dump(read);
  const MemoryFile dumped(text);
  expect(experiment::dump(experiment::load_experiment(dumped.path(), {}, "")) == text,
         "what was dumped is another experiment");
  std::size_t points = 1;
  for (const experiment::Axis& axis : read.config.grid.axes) points *= axis.values.size();
  if (points * read.config.seeds.size() <= 16) experiment::plan(read);  // hundreds take seconds
}

void read_results(std::string_view jsonl) {
  const MemoryFile file(jsonl);
  const std::string text = experiment::to_jsonl(experiment::read_rows(file.path()));
  const MemoryFile written(text);
  const std::vector<experiment::Row> again = experiment::read_rows(written.path());
  expect(experiment::to_jsonl(again) == text, "what was written is read as other results");
  experiment::to_csv(again);
}

}  // namespace

void experiment(std::string_view input) {
  const std::string_view yaml = input.substr(0, input.find('\0'));
  try {
    read_experiment(yaml);
  } catch (const Error& error) {
    expect(error.what()[0] != '\0', "an error without a message");
  }
  try {
    read_results(input.substr(std::min(yaml.size() + 1, input.size())));
  } catch (const Error& error) {
    expect(error.what()[0] != '\0', "an error without a message");
  }
}

}  // namespace polyhead::fuzz
