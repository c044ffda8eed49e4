#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "polyhead/train/config.h"
#include "polyhead/train/updater.h"
#include "polyhead/train/validation.h"

namespace polyhead::train {

/// What a run tells whoever watches it.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void message(const std::string& /*text*/) {}
  virtual void step(const StepReport& /*report*/) {}
  virtual void validated(std::int64_t /*step*/, const Figures& /*figures*/, bool /*best*/) {}
  virtual void saved(const std::string& /*path*/) {}
};

enum class StopReason { max_steps, max_epochs, max_minutes, patience, signal };
const char* name(StopReason reason);

struct TrainOptions {
  std::string folder;  ///< of the run
  int threads = 1;
  bool resume = false;
  std::function<bool()> stop_requested = [] {
    return false;
  };  ///< asked before the first update and after every one; true: save and stop
  /// Asked every training.diagnostics_every updates, with the weights that decoding would use: a JSON object for train.jsonl.
  std::function<std::string(const nn::Transformer&, const text::TextPipeline&)> diagnose = {};
};

struct TrainResult {
  std::int64_t step = 0;
  StopReason reason = StopReason::max_steps;
};

/// Trains as `config` says into a run folder, from the start or, with `resume`, from its newest checkpoint that is not
/// damaged: bit for bit as if it had never stopped. Throws Error when the folder holds a run and resume is not set, when
/// another process trains it, when it is moved or replaced meanwhile, when resume finds damaged checkpoints alone, one that
/// cannot be read for another reason, or a setting changed that is neither limit nor interval, or when the training data
/// changed; NumbersError when a loss, gradient or weight is not finite, which leaves the last checkpoint
/// as it is: none ever holds a value that is not finite.
TrainResult train(const Config& config, const TrainOptions& options, Observer& observer);

}  // namespace polyhead::train
