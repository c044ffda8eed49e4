#include "progress.h"

#include <unistd.h>

#include <iostream>

#include <fmt/format.h>

#include "polyhead/config/codec.h"

namespace polyhead::tools {

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

TrainingProgress::TrainingProgress(const train::TrainingConfig& limits)
    : limits_(limits), terminal_(isatty(STDERR_FILENO) == 1) {}

void TrainingProgress::line(const std::string& text) {
  std::cerr << (open_ ? "\r\033[K" : "") << text << '\n' << std::flush;
  open_ = false;
}

void TrainingProgress::message(const std::string& text) { line(text); }

std::string TrainingProgress::eta(const train::StepReport& report) const {
  if (!limits_.max_steps || report.step == first_step_) return "";
  const double per_step = (report.seconds - first_seconds_) / static_cast<double>(report.step - first_step_);
  return " | ETA " + clock_text(per_step * static_cast<double>(*limits_.max_steps - report.step));
}

void TrainingProgress::step(const train::StepReport& report) {
  if (first_step_ < 0) {
    first_step_ = report.step;
    first_seconds_ = report.seconds;
  }
  loss_ += report.loss * report.target_tokens;
  tokens_ += report.target_tokens;
  seconds_ += report.target_tokens / report.target_tokens_per_second;
  const auto every = terminal_ ? std::chrono::milliseconds(250) : std::chrono::milliseconds(10000);
  const bool last = limits_.max_steps && report.step == *limits_.max_steps;
  if (Clock::now() - shown_ < every && !last) return;
  shown_ = Clock::now();
  const std::string total = limits_.max_steps ? fmt::format("/{}", *limits_.max_steps) : "";
  const std::string text =
      fmt::format("step {}{} | epoch {} | loss {:.4f} | lr {:.3g} | {:.0f} tokens/s | {}{}", report.step,
                  total, report.epoch, loss_ / tokens_, report.learning_rate, tokens_ / seconds_,
                  clock_text(report.seconds), eta(report));
  if (terminal_) {
    std::cerr << (open_ ? "\r\033[K" : "") << text << std::flush;
    open_ = true;
  } else {
    line(text);
  }
  loss_ = tokens_ = seconds_ = 0;
}

void TrainingProgress::validated(std::int64_t step, const train::Figures& figures, bool best) {
  std::string text = fmt::format("validation at step {}:", step);
  for (const auto& [metric, value] : figures)
    text += fmt::format(" {} {:.4g}", config::Codec<train::Metric>::text(metric), value);
  line(text + (best ? " (best)" : ""));
}

void TrainingProgress::saved(const std::string& path) { line("saved " + path); }

SentenceProgress::SentenceProgress(std::string done, std::int64_t total)
    : done_(std::move(done)), total_(total), terminal_(isatty(STDERR_FILENO) == 1) {}

void SentenceProgress::add(std::int64_t sentences) {
  count_ += sentences;
  if (!terminal_ || Clock::now() - shown_ < std::chrono::milliseconds(250)) return;
  shown_ = Clock::now();
  const double rate = static_cast<double>(count_) / std::chrono::duration<double>(shown_ - begin_).count();
  std::cerr << fmt::format("\r\033[K{} {}/{} | {:.0f} sentences/s | ETA {}", done_, count_, total_, rate,
                           clock_text(static_cast<double>(total_ - count_) / rate))
            << std::flush;
  open_ = true;
}

void SentenceProgress::end() {
  if (open_) std::cerr << "\r\033[K" << std::flush;
  open_ = false;
}

}  // namespace polyhead::tools
