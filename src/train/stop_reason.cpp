#include "polyhead/train/trainer.h"

namespace polyhead::train {

const char* name(StopReason reason) {
  switch (reason) {
    case StopReason::max_steps:
      return "training.max_steps";
    case StopReason::max_epochs:
      return "training.max_epochs";
    case StopReason::max_minutes:
      return "training.max_minutes";
    case StopReason::patience:
      return "training.patience";
    case StopReason::signal:
      return "a signal";
  }
  return "";
}

}  // namespace polyhead::train
