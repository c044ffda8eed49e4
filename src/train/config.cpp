#include "polyhead/train/config.h"

#include <array>

namespace polyhead::train {

void Config::validate(config::Problems& problems) const {
  if (model.tie_embeddings == nn::TieEmbeddings::all && !tokenizer.shared)
    problems.add("model.tie_embeddings",
                 "all needs one vocabulary for both languages, tokenizer.shared: true");
  if (data.task != "files" || !data.valid.source.empty()) return;
  if (training.patience > 0)
    problems.add("training.patience", training.patience, " needs data.valid, which is not given");
  if (training.schedule.schedule == "plateau")
    problems.add("training.schedule", "plateau needs data.valid, which is not given");
}

bool may_change_on_resume(std::string_view key) {
  constexpr std::array<std::string_view, 10> keys{"training.max_steps",        "training.max_epochs",
                                                  "training.max_minutes",      "training.validate_every",
                                                  "training.checkpoint_every", "training.diagnostics_every",
                                                  "training.keep_last",        "training.keep_best",
                                                  "training.patience",         "checkpoint.on_error"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace polyhead::train
