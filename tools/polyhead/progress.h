#pragma once

#include <string>

#include "polyhead/core/clock.h"
#include "polyhead/train/trainer.h"

namespace polyhead::tools {

/// Tells on stderr how training goes: on a terminal one line that is kept up to date, elsewhere a plain line now and then.
class TrainingProgress : public train::Observer {
 public:
  explicit TrainingProgress(const train::TrainingConfig& limits);
  void message(const std::string& text) override;
  void step(const train::StepReport& report) override;
  void validated(std::int64_t step, const train::Figures& figures, bool best) override;
  void saved(const std::string& path) override;

 private:
  void line(const std::string& text);
  std::string eta(const train::StepReport& report) const;

  const train::TrainingConfig& limits_;
  bool terminal_;
  bool open_ = false;  // a line on the terminal that the next one replaces
  Clock::time_point shown_{};
  double loss_ = 0, tokens_ = 0, seconds_ = 0;  // since the last line
  std::int64_t first_step_ = -1;
  double first_seconds_ = 0;
};

/// Tells on a terminal, if stderr is one, how far work on many sentences is.
class SentenceProgress {
 public:
  /// `done` is the verb in the past: "translated".
  SentenceProgress(std::string done, std::int64_t total);
  void add(std::int64_t sentences);
  /// Removes the line.
  void end();

 private:
  std::string done_;
  std::int64_t total_, count_ = 0;
  bool terminal_, open_ = false;
  Clock::time_point begin_ = Clock::now(), shown_{};
};

/// 3725 -> "1:02:05"
std::string clock_text(double seconds);

}  // namespace polyhead::tools
