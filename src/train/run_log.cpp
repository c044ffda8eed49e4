#include "run_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <array>

#include <nlohmann/json.hpp>

#include "polyhead/config/codec.h"
#include "polyhead/core/error.h"

namespace polyhead::train {

using Json = nlohmann::ordered_json;

RunLog::RunLog(const std::string& path)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND), size_(::lseek(file_.id(), 0, SEEK_END)) {}

void RunLog::write(const std::string& line) {
  try {
    file_.write(line + '\n');
  } catch (const FileError&) {
    try {
      file_.truncate(size_);  // a line cut short would run into the next one
    } catch (const FileError&) {
      // What went wrong first says more; resuming leaves such lines out.
    }
    throw;
  }
  size_ += static_cast<std::int64_t>(line.size()) + 1;
}

void RunLog::step(const StepReport& r, const std::string& diagnostics) {
  Json line{{"step", r.step},
            {"epoch", r.epoch},
            {"loss", r.loss},
            {"negative_log_likelihood", r.negative_log_likelihood},
            {"token_accuracy", r.token_accuracy},
            {"learning_rate", r.learning_rate},
            {"grad_norm", r.grad_norm},
            {"target_tokens", r.target_tokens},
            {"target_tokens_per_second", r.target_tokens_per_second},
            {"seconds", r.seconds}};
  if (r.open_heads) line["open_heads"] = *r.open_heads;
  constexpr std::array names{"disagreement_subspace", "disagreement_position", "disagreement_output"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (r.disagreement[i]) line[names[i]] = *r.disagreement[i];
  if (!diagnostics.empty()) line["diagnostics"] = Json::parse(diagnostics);
  write(line.dump());
}

void RunLog::validation(std::int64_t step, const Figures& figures) {
  Json values = Json::object();
  for (const auto& [metric, value] : figures) values[config::Codec<Metric>::text(metric)] = value;
  write(Json{{"step", step}, {"validation", values}}.dump());
}

}  // namespace polyhead::train
