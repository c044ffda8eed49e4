#pragma once

#include <cstdint>
#include <string>

#include "polyhead/core/file.h"
#include "polyhead/train/trainer.h"

namespace polyhead::train {

/// train.jsonl: one JSON object a line, one line an update and one a validation. Throws FileError when a line cannot be
/// written; nothing of it is left in the file then.
class RunLog {
 public:
  /// Appends to `path`.
  explicit RunLog(const std::string& path);
  /// `diagnostics`: a JSON object, or "".
  void step(const StepReport& report, const std::string& diagnostics);
  void validation(std::int64_t step, const Figures& figures);
  /// Until the lines are where a power failure leaves them.
  void sync() { file_.sync(); }
  void close() { file_.close(); }

 private:
  void write(const std::string& line);
  File file_;
  std::int64_t size_;
};

}  // namespace polyhead::train
