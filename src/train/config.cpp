#include "polyhead/train/config.h"

#include <array>

namespace polyhead::train {

bool may_change_on_resume(std::string_view key) {
  constexpr std::array<std::string_view, 8> keys{
      "training.max_steps",        "training.max_epochs", "training.max_minutes", "training.validate_every",
      "training.checkpoint_every", "training.keep_last",  "training.keep_best",   "training.patience"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace polyhead::train
