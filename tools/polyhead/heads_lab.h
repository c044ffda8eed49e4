#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "model.h"
#include "polyhead/heads/evaluation.h"
#include "polyhead/heads/importance.h"
#include "progress.h"

/// `polyhead heads mask | importance | curve | prune`: experiments on the heads of a trained model.
namespace polyhead::tools {

std::vector<Command> add_heads_lab(CLI::App& heads);
Command add_mask(CLI::App& heads);
Command add_importance(CLI::App& heads);
Command add_curve(CLI::App& heads);
Command add_prune(CLI::App& heads);

/// What the commands that measure a model have in common.
struct MeasureOptions : ModelOptions {
  std::string split = "test";
  int limit = 0;  ///< 0: none
  bool json = false;
};
void add_measuring(CLI::App& command, MeasureOptions& options);

/// The split to measure on. A line on stderr says when some of it is left out.
heads::Text load_text(const MeasureOptions& options, const train::LoadedModel& loaded);
/// {"checkpoint": ..., "step": ..., "split": ..., "sentences": ...}
nlohmann::ordered_json header(const MeasureOptions& options, const train::LoadedModel& loaded,
                              const heads::Text& text);
/// ["encoder.0.3", ...]
nlohmann::ordered_json names_json(std::span<const heads::Head> set);

/// Calls work(progress) and shows how far it is, over `total` sentences read again and again.
template <class Work>
auto with_progress(const char* done, std::size_t total, const Work& work) {
  SentenceProgress progress(done, static_cast<std::int64_t>(total));
  auto result = work([&](std::int64_t n) { progress.add(n); });
  progress.end();
  return result;
}

/// The figures of heads by name.
using FigureColumn = std::pair<const char*, std::vector<double> heads::HeadFigures::*>;
const std::vector<FigureColumn>& figure_columns();
/// heads::head_figures() with progress.
heads::HeadFigures measure(const MeasureOptions& options, const train::LoadedModel& loaded,
                           const heads::Text& text);

}  // namespace polyhead::tools
