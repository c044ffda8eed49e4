#include "start.h"

#include "polyhead/config/yaml.h"
#include "polyhead/train/model_file.h"

namespace polyhead::train {
namespace {

/// The settings that changed from `before` to `now`, of those that `matters` chooses, as "key (before -> now), ...".
template <class Predicate>
std::string changes(const Config& before, const Config& now, const Predicate& matters) {
  std::string text;
  for (const config::Difference& d : config::difference(before, now))
    if (matters(d.key)) text += concat(text.empty() ? "" : ", ", d.key, " (", d.first, " -> ", d.second, ")");
  return text;
}

}  // namespace

void require_no_run(const RunFolder& folder) {
  require<FileError>(!folder.exists(), folder.path(),
                     ": holds a run already; expected --resume, or another folder with --out");
}

std::optional<Checkpoint> resume_point(const Config& config, const RunFolder& folder, Observer& observer) {
  LatestCheckpoint latest = latest_valid_checkpoint(folder.checkpoints());
  for (const std::string& reason : latest.skipped) observer.message("skipped: " + reason);
  require<FileError>(
      latest.checkpoint || latest.skipped.empty(), folder.path(),
      ": no checkpoint can be resumed from: ", latest.skipped.empty() ? "" : latest.skipped.front(),
      "; to train from the start, move ", folder.checkpoints(), "/step-*.h5 away");
  if (!latest.checkpoint) {
    observer.message(concat(folder.path(), ": no checkpoint to resume from, training from the start"));
    return std::nullopt;
  }
  const std::string changed = changes(config_of(*latest.checkpoint, latest.path), config,
                                      [](const std::string& key) { return !may_change_on_resume(key); });
  require(changed.empty(), folder.path(), ": cannot resume with other settings: ", changed,
          "; expected only limits and intervals to change");
  observer.message(concat("resuming from ", latest.path));
  return std::move(latest.checkpoint);
}

Checkpoint initial_checkpoint(const Config& config, Observer& observer) {
  auto [path, checkpoint, damaged] = open_checkpoint(*config.training.initial_checkpoint);
  if (!damaged.empty()) observer.message(damaged);
  const std::string changed = changes(config_of(checkpoint, path), config, [](const std::string& key) {
    return key.starts_with("tokenizer.") || key == "data.lowercase";
  });
  require(changed.empty(), "training.initial_checkpoint: ", path,
          " has tokenizers of its own, which training from it keeps: cannot change ", changed);
  return std::move(checkpoint);
}

}  // namespace polyhead::train
