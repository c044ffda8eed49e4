#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "commands.h"
#include "files.h"
#include "grammar_statistics.h"
#include "model.h"
#include "phenomena.h"
#include "polyhead/core/error.h"
#include "polyhead/core/parallel.h"
#include "polyhead/data/grammar/grammar.h"
#include "polyhead/data/tasks.h"

namespace polyhead::tools {
namespace {

namespace fs = std::filesystem;
namespace grammar = data::grammar;
using Json = nlohmann::ordered_json;

struct DataOptions {
  std::string task, out;
  int size = grammar::find_split("train").size;
  std::uint64_t seed = 1;
  std::vector<std::string> splits;
  int threads = 1;
  bool overwrite = false, statistics = false, json = false;

  bool is_grammar() const { return task == "grammar"; }
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

/// The pairs of a split, as many as there usually are, but `size` of train.
void each_pair(const DataOptions& o, const std::string& split,
               const std::function<void(const data::Pair&)>& take) {
  if (!o.is_grammar()) {
    data::DataConfig config;
    config.task = o.task;
    config.train_size = o.size;
    return data::each_pair(config, split_of(split), o.seed, take);
  }
  grammar::Generator generator(split, o.seed);
  const int size = split == "train" ? o.size : grammar::find_split(split).size;
  for (int i = 0; i < size; ++i) take(generator.next());
}

Section make_section(const DataOptions& o, const std::string& name) {
  Section section;
  section.statistics.split = name;
  std::int64_t index = 0;
  each_pair(o, name, [&](const data::Pair& pair) {
    section.statistics.add(pair);
    if (o.out.empty()) return;
    section.source += data::text(pair.source) + '\n';
    section.target += data::text(pair.target) + '\n';
    section.annotations += annotation(name, index++, pair);
  });
  return section;
}

constexpr const char* annotations_file = "annotations.jsonl";
/// In the folder, while old files go and new ones come: both, and a list of their splits. The command's own.
constexpr const char* exchange_folder = ".polyhead-exchange";
constexpr const char* exchange_list = "list";

std::vector<std::string> files_of(const std::vector<std::string>& splits) {
  std::vector<std::string> files;
  for (const std::string& split : splits)
    for (const char* side : {".en", ".de"}) files.push_back(split + side);
  files.emplace_back(annotations_file);
  return files;
}

/// The splits that the command wrote to the folder: those that its annotations name, and those that a run that was killed
/// had on its way. No other files are ever replaced or removed.
std::vector<std::string> written_splits(const fs::path& folder) {
  std::set<std::string> named;
  std::ifstream annotations(folder / annotations_file), list(folder / exchange_folder / exchange_list);
  constexpr std::string_view begin = R"({"split":")";
  for (std::string line; std::getline(annotations, line) && line.starts_with(begin);)
    named.insert(line.substr(begin.size(), line.find('"', begin.size()) - begin.size()));
  for (std::string line; std::getline(list, line);) named.insert(line);
  std::vector<std::string> written;
  for (const grammar::Split& split : grammar::splits())
    if (named.contains(std::string(split.name))) written.emplace_back(split.name);
  return written;
}

/// Before anything is generated.
void check_free(const DataOptions& o, const std::vector<std::string>& splits) {
  if (o.out.empty()) return;
  const fs::path folder(o.out);
  require<FileError>(!fs::exists(folder) || fs::is_directory(folder), o.out, ": a file, expected a folder");
  const std::vector<std::string> written = written_splits(folder);
  const std::vector<std::string> own = written.empty() ? written : files_of(written);
  for (const std::string& file : files_of(splits)) {
    if (!fs::exists(folder / file)) continue;
    require<FileError>(
        o.overwrite, o.out, "/", file,
        ": exists already; give another --out, or --overwrite to replace what the command wrote");
    require<FileError>(std::find(own.begin(), own.end(), file) != own.end(), o.out, "/", file,
                       ": not written by this command, so it is not overwritten; give another --out");
  }
}

using Files = std::vector<std::pair<std::string, std::string>>;  ///< name, bytes

/// The files of a folder on their way from old to new. Undoes what it did unless done() was reached.
class Exchange {
 public:
  explicit Exchange(fs::path folder) : folder_(std::move(folder)), own_(folder_ / exchange_folder) {
    for (fs::path missing = folder_; !missing.empty() && !fs::exists(missing);
         missing = missing.parent_path())
      made_.push_back(missing);
    try {
      fs::create_directories(folder_);
      fs::create_directories(own_ / "old");
    } catch (...) {
      undo();
      throw;
    }
  }
  ~Exchange() {
    if (!done_) undo();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Writes a file beside those that are there.
  void write(const std::string& name, const std::string& bytes) { write_output(own_ / name, bytes); }
  void set_aside(const std::string& name) {
    if (fs::exists(folder_ / name)) move(name, folder_, own_ / "old");
  }
  void put(const std::string& name) { move(name, own_, folder_); }
  /// Removes what was set aside.
  void done() {
    done_ = true;
    std::error_code ignored;
    fs::remove_all(own_, ignored);
  }

 private:
  void undo() {
    std::error_code ignored;
    for (auto move = moves_.rbegin(); move != moves_.rend(); ++move)
      fs::rename(move->second, move->first, ignored);
    fs::remove_all(own_, ignored);
    for (const fs::path& path : made_) fs::remove(path, ignored);
  }
  void move(const std::string& name, const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::rename(from / name, to / name, error);
    require<FileError>(!error, (folder_ / name).string(), ": cannot replace: ", error.message());
    moves_.emplace_back(from / name, to / name);
  }
  fs::path folder_, own_;
  std::vector<fs::path> made_;                        ///< folders, innermost first
  std::vector<std::pair<fs::path, fs::path>> moves_;  ///< made so far
  bool done_ = false;
};

/// All of the files, in place of what the command wrote there before; or when that fails, none, and the folder as it was.
void write_folder(const fs::path& folder, const std::vector<std::string>& splits, const Files& files) {
  std::vector<std::string> either = written_splits(folder);
  for (const std::string& split : splits)
    if (std::find(either.begin(), either.end(), split) == either.end()) either.push_back(split);
  Exchange exchange(folder);
  exchange.write(exchange_list, CLI::detail::join(either, "\n") + '\n');
  for (const auto& [name, bytes] : files) exchange.write(name, bytes);
  for (const std::string& name : files_of(either)) exchange.set_aside(name);
  for (const auto& [name, bytes] : files) exchange.put(name);
  exchange.done();
}

/// Those asked for, or all that the task has.
std::vector<std::string> splits_of(const DataOptions& o) {
  std::vector<std::string> all{"train", "valid", "test"};
  if (o.is_grammar()) {
    all.clear();
    for (const grammar::Split& split : grammar::splits()) all.emplace_back(split.name);
  }
  for (const std::string& name : o.splits) {
    require(std::count(all.begin(), all.end(), name) == 1, "--splits: ", o.task, " has no split \"", name,
            "\"; expected one of ", CLI::detail::join(all, ", "));
    require(std::count(o.splits.begin(), o.splits.end(), name) == 1, "--splits: ", name, " is named twice");
  }
  return o.splits.empty() ? all : o.splits;
}

int run_data(const DataOptions& o) {
  require(!o.out.empty() || o.statistics, "data ", o.task,
          ": --out or --statistics is required; see polyhead data --help");
  require(!o.statistics || o.is_grammar(), "data ", o.task, ": --statistics are of the task grammar alone");
  const std::vector<std::string> names = splits_of(o);
  check_free(o, names);
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
    files.emplace_back(annotations_file, std::move(annotations));
    write_folder(o.out, names, files);
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

}  // namespace

Command add_data(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "data", "Write a toy task's data as files: train.en, train.de and so on, and annotations.jsonl");
  auto o = std::make_shared<DataOptions>();
  std::vector<std::string> tasks;
  for (const data::Task& task : data::tasks()) tasks.emplace_back(task.name);
  command->add_option("task", o->task, "one of " + data::task_names() + "; grammar is the toy language")
      ->check(CLI::IsMember(tasks))
      ->type_name("TASK")
      ->required();
  command->add_option("--out", o->out, "folder to write; files that exist are kept, and the command fails")
      ->type_name("DIR");
  command->add_option("--size", o->size, "pairs of train; the other splits have fixed sizes")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_seed(*command, o->seed, "of every random choice");
  command
      ->add_option(
          "--splits", o->splits,
          "some of train, valid, test, or of grammar's " + grammar::split_names() + "; all by default")
      ->delimiter(',');
  command->add_flag("--overwrite", o->overwrite,
                    "replace what the command wrote to the folder before, all splits, and nothing else");
  CLI::Option* statistics =
      command->add_flag("--statistics", o->statistics,
                        "print how phenomena, lengths and words are distributed in each split of grammar");
  command->add_flag("--json", o->json, "the statistics as one JSON object")->needs(statistics);
  add_threads(*command, o->threads);
  return {command, [o] { return run_data(*o); }};
}

}  // namespace polyhead::tools
