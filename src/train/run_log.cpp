#include "run_log.h"

#include <nlohmann/json.hpp>

#include "polyhead/config/codec.h"

namespace polyhead::train {

using Json = nlohmann::ordered_json;

RunLog::RunLog(const std::string& path) : path_(path), out_(path, std::ios::app) {
  require<FileError>(out_.is_open(), path, ": cannot open the log for writing");
}

void RunLog::write(const std::string& line) {
  out_ << line << std::endl;
  require<FileError>(out_.good(), path_, ": cannot write the log");
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
  if (!diagnostics.empty()) line["diagnostics"] = Json::parse(diagnostics);
  write(line.dump());
}

void RunLog::validation(std::int64_t step, const Figures& figures) {
  Json values = Json::object();
  for (const auto& [metric, value] : figures) values[config::Codec<Metric>::text(metric)] = value;
  write(Json{{"step", step}, {"validation", values}}.dump());
}

}  // namespace polyhead::train
