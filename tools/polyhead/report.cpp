#include "polyhead/experiment/report.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "polyhead/core/error.h"

namespace polyhead::tools {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::string path, page;
  int threads = 1;
};

/// report.html in a folder; beside a checkpoint, by its name.
fs::path default_page(const std::string& path) {
  if (fs::is_directory(path)) return fs::path(path) / "report.html";
  return fs::path(path).replace_extension(".report.html");
}

int run_report(const ReportOptions& o) {
  const fs::path page = o.page.empty() ? default_page(o.path) : fs::path(o.page);
  fs::path data = page;
  data.replace_extension(".json");
  require(page.extension() == ".html", "--out ", page.string(), ": expected a name that ends in .html");
  const std::string json = experiment::report_data(o.path, o.threads);
  write_output(data.string(), json);
  write_output(page.string(), experiment::report_page(json));
  const nlohmann::json shown = nlohmann::json::parse(json);
  for (const std::string warning : shown["warnings"]) complain(warning);
  complain("wrote " + page.string());
  return 0;
}

}  // namespace

Command add_report(CLI::App& program) {
  CLI::App* command = program.add_subcommand("report",
                                             "Show an experiment, a run or a checkpoint on one page of HTML "
                                             "that needs nothing but itself, with its data as "
                                             "JSON beside it");
  auto o = std::make_shared<ReportOptions>();
  command->add_option("DIR", o->path, "folder of polyhead ablate, run folder, or checkpoint")
      ->required()
      ->type_name("DIR|CHECKPOINT");
  command->add_option("--out", o->page, "the page; DIR/report.html where not given")->type_name("FILE.html");
  add_threads(*command, o->threads);
  return {command, [o] { return run_report(*o); }};
}

}  // namespace polyhead::tools
