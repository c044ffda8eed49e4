#pragma once

#include <fstream>
#include <string>

#include "polyhead/train/trainer.h"

namespace polyhead::train {

/// train.jsonl: one JSON object a line, one line an update and one a validation.
class RunLog {
 public:
  /// Appends to `path`.
  explicit RunLog(const std::string& path);
  /// `diagnostics`: a JSON object, or "".
  void step(const StepReport& report, const std::string& diagnostics);
  void validation(std::int64_t step, const Figures& figures);

 private:
  void write(const std::string& line);
  std::string path_;
  std::ofstream out_;
};

}  // namespace polyhead::train
