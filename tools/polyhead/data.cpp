#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "grammar_statistics.h"
#include "phenomena.h"
#include "polyhead/core/error.h"
#include "polyhead/core/parallel.h"
#include "polyhead/data/grammar/grammar.h"

namespace polyhead::tools {
namespace {

namespace fs = std::filesystem;
namespace grammar = data::grammar;
using Json = nlohmann::ordered_json;

struct DataOptions {
  std::string out;
  int size = grammar::find_split("train").size;
  std::uint64_t seed = 1;
  std::vector<std::string> splits;
  int threads = 1;
  bool overwrite = false, statistics = false, json = false;
};

Json tree_json(const data::Dependencies& tree) { return {{"heads", tree.heads}, {"labels", tree.labels}}; }

/// One line of the annotations.
std::string annotation(std::string_view split, std::int64_t index, const data::Pair& pair) {
  Json line{{"split", split},
            {"index", index},
            {"source", data::text(pair.source)},
            {"target", data::text(pair.target)},
            {"alignment", {{"sure", Json::array()}, {"possible", Json::array()}}},
            {"source_tree", tree_json(pair.source_tree)},
            {"target_tree", tree_json(pair.target_tree)},
            {"phenomena", Json::array()},
            {"depth", pair.depth},
            {"attractors", pair.attractors},
            {"held_out", pair.held_out}};
  for (const data::Link& link : pair.alignment) {
    const Json ends = Json::array({link.source, link.target});
    if (link.sure) line["alignment"]["sure"].push_back(ends);
    line["alignment"]["possible"].push_back(ends);  // sure links are possible ones too
  }
  for (const data::Probe& probe : pair.probes) line["phenomena"].push_back(probe_json(probe));
  return line.dump() + '\n';
}

/// A split as it is written.
struct Section {
  std::string source, target, annotations;
  GrammarStatistics statistics;
};

Section make_section(const DataOptions& o, const std::string& name) {
  Section section;
  section.statistics.split = name;
  grammar::Generator generator(name, o.seed);
  const int size = name == "train" ? o.size : grammar::find_split(name).size;
  for (int i = 0; i < size; ++i) {
    const data::Pair pair = generator.next();
    section.statistics.add(pair);
    if (o.out.empty()) continue;
    section.source += data::text(pair.source) + '\n';
    section.target += data::text(pair.target) + '\n';
    section.annotations += annotation(name, i, pair);
  }
  return section;
}

/// All that the command may write to a folder.
std::vector<std::string> own_files() {
  std::vector<std::string> files{"annotations.jsonl"};
  for (const grammar::Split& split : grammar::splits())
    for (const char* side : {".en", ".de"}) files.push_back(std::string(split.name).append(side));
  return files;
}

/// Before anything is generated.
void check_free(const DataOptions& o) {
  if (o.out.empty()) return;
  require<FileError>(!fs::exists(o.out) || fs::is_directory(o.out), o.out, ": a file, expected a folder");
  if (o.overwrite) return;
  for (const std::string& file : own_files())
    require<FileError>(!fs::exists(fs::path(o.out) / file), o.out, "/", file,
                       ": exists already; give another --out, or --overwrite to replace it");
}

using Files = std::vector<std::pair<std::string, std::string>>;  ///< name, bytes

/// The files of a folder on their way from old to new. Undoes what it did unless done() was reached.
class Exchange {
 public:
  explicit Exchange(fs::path folder) : folder_(std::move(folder)) { made_ = fs::create_directories(folder_); }
  ~Exchange() {
    std::error_code ignored;
    if (done_) return;
    for (auto move = moves_.rbegin(); move != moves_.rend(); ++move)
      fs::rename(move->second, move->first, ignored);
    for (const fs::path& path : partial_) fs::remove(path, ignored);
    if (made_) fs::remove(folder_, ignored);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Writes a file beside the one that it will be.
  void write(const std::string& name, const std::string& bytes) {
    partial_.push_back(folder_ / (name + ".partial"));
    write_output(partial_.back(), bytes);
  }
  void set_aside(const std::string& name) {
    if (fs::exists(folder_ / name)) move(folder_ / name, folder_ / (name + ".old"));
  }
  void put(const std::string& name) { move(folder_ / (name + ".partial"), folder_ / name); }
  /// Removes what was set aside, also by a process that was killed.
  void done() {
    done_ = true;
    for (const std::string& name : own_files())
      for (const char* mark : {".old", ".partial"}) fs::remove(folder_ / (name + mark));
  }

 private:
  void move(const fs::path& from, const fs::path& to) {
    fs::rename(from, to);
    moves_.emplace_back(from, to);
  }
  fs::path folder_;
  std::vector<fs::path> partial_;                     ///< written so far
  std::vector<std::pair<fs::path, fs::path>> moves_;  ///< made so far
  bool made_ = false, done_ = false;
};

/// All of the files, in place of what the command wrote there before; or when that fails, none, and the folder as it was.
void write_folder(const fs::path& folder, const Files& files) {
  Exchange exchange(folder);
  for (const auto& [name, bytes] : files) exchange.write(name, bytes);
  for (const std::string& name : own_files()) exchange.set_aside(name);
  for (const auto& [name, bytes] : files) exchange.put(name);
  exchange.done();
}

int run_data(const DataOptions& o) {
  std::vector<std::string> names = o.splits;
  if (names.empty())
    for (const grammar::Split& split : grammar::splits()) names.emplace_back(split.name);
  for (const std::string& name : names) grammar::find_split(name);
  for (const std::string& name : names)
    require(std::count(names.begin(), names.end(), name) == 1, "--splits: ", name, " is named twice");
  require(!o.out.empty() || o.statistics,
          "data grammar: --out or --statistics is required; see polyhead data grammar --help");
  check_free(o);
  std::vector<Section> sections(names.size());
  parallel_for(o.threads, static_cast<std::int64_t>(names.size()), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    sections[at] = make_section(o, names[at]);
  });
  if (!o.out.empty()) {
    Files files;
    std::string annotations;
    for (std::size_t i = 0; i < names.size(); ++i) {
      files.emplace_back(names[i] + ".en", std::move(sections[i].source));
      files.emplace_back(names[i] + ".de", std::move(sections[i].target));
      annotations += sections[i].annotations;
    }
    files.emplace_back("annotations.jsonl", std::move(annotations));
    write_folder(o.out, files);
    complain(names.size() == 1 ? concat("wrote ", names.front(), " and its annotations to ", o.out)
                               : concat("wrote ", names.size(), " splits and their annotations to ", o.out));
  }
  if (o.statistics) {
    std::vector<GrammarStatistics> statistics;
    for (Section& section : sections) statistics.push_back(std::move(section.statistics));
    write_output("", o.json ? statistics_json(statistics) : statistics_table(statistics));
  }
  return 0;
}

Command add_grammar(CLI::App& data) {
  CLI::App* command = data.add_subcommand(
      "grammar", "Write the toy translation language: train.en, train.de and so on, and annotations.jsonl");
  auto o = std::make_shared<DataOptions>();
  command->add_option("--out", o->out, "folder to write; files that exist are kept, and the command fails")
      ->type_name("DIR");
  command->add_option("--size", o->size, "pairs of train; the other splits have fixed sizes")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_seed(*command, o->seed, "of every random choice");
  command->add_option("--splits", o->splits, "some of " + grammar::split_names() + "; all by default")
      ->delimiter(',');
  command->add_flag("--overwrite", o->overwrite,
                    "replace what the command wrote to the folder before, all splits");
  CLI::Option* statistics = command->add_flag(
      "--statistics", o->statistics, "print how phenomena, lengths and words are distributed in each split");
  command->add_flag("--json", o->json, "the statistics as one JSON object")->needs(statistics);
  add_threads(*command, o->threads);
  return {command, [o] { return run_data(*o); }};
}

}  // namespace

Command add_data(CLI::App& program) {
  CLI::App* command = program.add_subcommand("data", "Write data that needs no corpus");
  command->require_subcommand(1);
  return {command, add_grammar(*command).run};
}

}  // namespace polyhead::tools
