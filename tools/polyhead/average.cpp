#include "polyhead/train/average.h"

#include <algorithm>

#include "commands.h"
#include "files.h"
#include "polyhead/core/error.h"
#include "polyhead/train/run_folder.h"

namespace polyhead::tools {
namespace {

struct AverageOptions {
  std::string run, out;
  std::int64_t last = 0, best = 0;
};

int run_average(const AverageOptions& o) {
  if (!o.out.empty()) require_new(o.out, "--out");
  const std::string folder = train::RunFolder(o.run).checkpoints();
  const std::vector<train::CheckpointFile> files = train::list_checkpoints(folder);
  require<FileError>(!files.empty(), o.run, ": no checkpoint in ", folder, ", expected step-*.h5");
  std::vector<std::string> paths;
  if (o.best > 0)
    paths = train::best_checkpoints(o.run, o.best);
  else if (o.last > 0)
    paths = train::last_checkpoints(o.run, o.last);
  else
    for (const train::CheckpointFile& file : files) paths.push_back(file.path);
  const std::string out = o.out.empty() ? o.run + "/average.h5" : o.out;
  train::write_checkpoint(out, train::average_checkpoints(paths));
  for (const std::string& path : paths) complain("averaged " + path);
  write_output("", out + '\n');
  return 0;
}

}  // namespace

Command add_average(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "average", "Write the mean of a run's checkpoints as a checkpoint, and print its path");
  auto o = std::make_shared<AverageOptions>();
  command->add_option("RUN", o->run, "run folder; all its checkpoints unless --last or --best says otherwise")
      ->required();
  CLI::Option* last =
      command->add_option("--last", o->last, "how many of the newest that training.checkpoint_every made")
          ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--best", o->best, "how many of the best by training.best_metric (see training.keep_best)")
      ->check(CLI::Range(1, 1'000'000))
      ->excludes(last);
  command
      ->add_option(
          "--out", o->out,
          "the checkpoint to write, which must not exist yet; by default RUN/average.h5, which is replaced")
      ->type_name("FILE");
  return {command, [o] { return run_average(*o); }};
}

}  // namespace polyhead::tools
