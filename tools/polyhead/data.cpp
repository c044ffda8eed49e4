#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "grammar_statistics.h"
#include "model.h"
#include "phenomena.h"
#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
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

constexpr std::string_view annotations_file = "annotations.jsonl";
constexpr std::string_view annotations_begin = R"({"split":")";

/// Whether the command may have written the file.
bool is_own(const fs::path& file) {
  if (fs::symlink_status(file).type() != fs::file_type::regular) return false;
  const std::string name = file.filename().string();
  return name == annotations_file ||
         std::any_of(grammar::splits().begin(), grammar::splits().end(), [&](const auto& s) {
           return name == concat(s.name, ".en") || name == concat(s.name, ".de");
         });
}

/// The folder is new, or empty, or it holds what the command wrote and nothing else, and that may be replaced.
void check_free(const DataOptions& o) {
  if (!fs::exists(fs::symlink_status(o.out))) return;
  require<FileError>(fs::is_directory(o.out), o.out, ": a file, expected a folder");
  if (fs::is_empty(o.out)) return;
  require<FileError>(o.overwrite, o.out,
                     ": is not empty; give another --out, or --overwrite to replace what the command wrote");
  for (const auto& entry : fs::directory_iterator(o.out))
    require<FileError>(is_own(entry.path()), entry.path().string(),
                       ": not written by this command, so the folder is not replaced; give another --out");
  std::string begin(annotations_begin.size(), ' ');
  std::ifstream(fs::path(o.out) / annotations_file)
      .read(begin.data(), static_cast<std::streamsize>(begin.size()));
  require<FileError>(
      begin == annotations_begin, o.out, '/', annotations_file,
      ": missing or not written by this command, so the folder is not replaced; give another --out");
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
  if (!o.out.empty()) check_free(o);  // before anything is generated
  std::vector<Section> sections(names.size());
  parallel_for(o.threads, static_cast<std::int64_t>(names.size()), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    sections[at] = make_section(o, names[at]);
  });
  if (!o.out.empty()) {
    std::vector<NamedContent> files;
    std::string annotations;
    for (std::size_t i = 0; i < names.size(); ++i) {
      files.push_back({names[i] + ".en", std::move(sections[i].source)});
      files.push_back({names[i] + ".de", std::move(sections[i].target)});
      annotations += sections[i].annotations;
    }
    files.push_back({std::string(annotations_file), std::move(annotations)});
    check_free(o);
    replace_folder(o.out, files);
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
  command->add_option("--out", o->out, "folder to write: a new one, or an empty one")->type_name("DIR");
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
                    "replace a folder that holds what the command wrote before, and nothing else");
  CLI::Option* statistics =
      command->add_flag("--statistics", o->statistics,
                        "print how phenomena, lengths and words are distributed in each split of grammar");
  command->add_flag("--json", o->json, "the statistics as one JSON object")->needs(statistics);
  add_threads(*command, o->threads);
  return {command, [o] { return run_data(*o); }};
}

}  // namespace polyhead::tools
