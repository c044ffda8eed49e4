#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "polyhead/data/tasks.h"
#include "tools/program.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Data, WritesTheToyLanguageAndWhatIsKnownAboutIt) {
  const std::string folder = fresh_path("language"), again = fresh_path("language"),
                    other = fresh_path("language");
  const auto write = [](const std::string& out, const char* seed) {
    return run(
        {"data", "grammar", "--out", out, "--size", "30", "--seed", seed, "--splits", "train,depth-valid"});
  };
  const Outcome first = write(folder, "3");
  EXPECT_EQ(first.status, 0) << first.err;
  const std::vector<std::string> sources = lines_of(read_text(folder + "/train.en")),
                                 targets = lines_of(read_text(folder + "/train.de")),
                                 annotations = lines_of(read_text(folder + "/annotations.jsonl"));
  ASSERT_EQ(sources.size(), 30u);
  ASSERT_EQ(targets.size(), 30u);
  EXPECT_EQ(lines_of(read_text(folder + "/depth-valid.de")).size(), 200u);
  ASSERT_EQ(annotations.size(), 230u);
  for (std::size_t i = 0; i < 30; ++i) {
    const json line = json::parse(annotations[i]);
    EXPECT_EQ(line["split"], "train");
    EXPECT_EQ(line["index"], i);
    EXPECT_EQ(line["source"], sources[i]);
    EXPECT_EQ(line["target"], targets[i]);
    EXPECT_EQ(line["target_tree"]["heads"].size(),
              lines_of(targets[i]).size() +
                  static_cast<std::size_t>(std::count(targets[i].begin(), targets[i].end(), ' ')));
    for (const json& phenomenon : line["phenomena"]) EXPECT_NE(phenomenon["contrast"], targets[i]);
  }
  EXPECT_EQ(json::parse(annotations[30])["split"], "depth-valid");

  // The same seed gives the same bytes, another seed others, and nothing is lost.
  EXPECT_EQ(write(again, "3").status, 0);
  EXPECT_EQ(write(other, "4").status, 0);
  EXPECT_EQ(read_text(again + "/annotations.jsonl"), read_text(folder + "/annotations.jsonl"));
  EXPECT_NE(read_text(other + "/train.en"), read_text(folder + "/train.en"));
  const Outcome refused = write(folder, "4");
  EXPECT_EQ(refused.status, 4);
  EXPECT_THAT(refused.err, HasSubstr(": is not empty; give another --out, or --overwrite"));
  EXPECT_EQ(count_lines(refused.err), 1);
  EXPECT_EQ(lines_of(read_text(folder + "/train.en")), sources);
}

TEST(Data, WritesEveryTaskAsTrainingReadsIt) {
  for (const data::Task& task : data::tasks()) {
    if (task.name == "grammar") continue;
    const std::string folder = fresh_path("task"), name(task.name);
    const Outcome outcome = run({"data", name, "--out", folder, "--size", "25", "--seed", "7"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    data::DataConfig config;
    config.task = name;
    config.train_size = 25;
    std::size_t pairs = 0;
    for (const data::Split split : {data::Split::train, data::Split::valid, data::Split::test}) {
      const data::ParallelText text = data::generate(config, split, 7);
      const std::string path = folder + '/' + std::string(data::name(split));
      EXPECT_EQ(lines_of(read_text(path + ".en")), text.source) << path;
      EXPECT_EQ(lines_of(read_text(path + ".de")), text.target) << path;
      pairs += text.source.size();
    }
    const std::vector<std::string> annotations = lines_of(read_text(folder + "/annotations.jsonl"));
    EXPECT_EQ(annotations.size(), pairs) << name;
    if (name != "recall") continue;
    // Gold attention: the last letter looks at the digit after its first occurrence, which is the target.
    const json line = json::parse(annotations.front());
    const std::size_t digit = line["source_tree"]["heads"].back();
    EXPECT_EQ(line["source_tree"]["labels"].back(), "induction");
    EXPECT_EQ(line["source"].get<std::string>().substr(2 * digit, 1), line["target"]);
    EXPECT_EQ(line["alignment"]["sure"], json::parse("[[" + std::to_string(digit) + ",0]]"));
  }
}

TEST(Data, ReplacesNoFolderButItsOwn) {
  const std::string folder = fresh_path("language");
  const auto write = [&](const char* split, const std::string& to) {
    return run({"data", "grammar", "--out", to, "--size", "20", "--splits", split, "--overwrite"});
  };
  const auto files = [&] {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_regular_file()) contents[entry.path().filename()] = read_text(entry.path());
    return contents;
  };
  EXPECT_EQ(write("train", folder).err, "polyhead: wrote train and its annotations to " + folder + "\n");
  // The whole folder, also through a link, and with a slash.
  const std::string link = fresh_path("link");
  fs::create_directory_symlink(folder, link);
  EXPECT_EQ(write("valid", link + '/').status, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  const auto before = files();
  EXPECT_THAT(before,
              ::testing::UnorderedElementsAre(::testing::Key("annotations.jsonl"), ::testing::Key("valid.de"),
                                              ::testing::Key("valid.en")));
  // Nothing of a user's own is lost, whatever its name.
  const auto refuses = [&](const std::string& name, const std::string& message) {
    const Outcome refused = write("train", folder);
    EXPECT_EQ(refused.status, 4);
    EXPECT_THAT(refused.err, HasSubstr(folder + '/' + name + message));
    EXPECT_EQ(count_lines(refused.err), 1);
    EXPECT_TRUE(fs::exists(folder + '/' + name));
    fs::remove_all(folder + '/' + name);
    EXPECT_EQ(files(), before);
  };
  std::ofstream(folder + "/notes.txt") << "mine";
  refuses("notes.txt", ": not written by this command, so the folder is not replaced; give another --out");
  fs::create_directories(folder + "/train.en/mine");
  refuses("train.en", ": not written by this command");
  fs::create_symlink("/none", folder + "/train.de");
  EXPECT_EQ(write("train", folder).status, 4);
  EXPECT_TRUE(fs::is_symlink(folder + "/train.de"));
  fs::remove(folder + "/train.de");
  std::ofstream(folder + "/annotations.jsonl") << "mine";
  EXPECT_THAT(write("train", folder).err,
              HasSubstr("/annotations.jsonl: missing or not written by this command"));
  EXPECT_EQ(read_text(folder + "/annotations.jsonl"), "mine");
}

TEST(Data, PrintsTheDistributionOfTheToyLanguage) {
  const Arguments command{"data", "grammar",  "--statistics",          "--size",
                          "200",  "--splits", "train,attractors-valid"};
  Arguments as_json = command;
  as_json.emplace_back("--json");
  const Outcome table = run(command), object = run(as_json);
  EXPECT_THAT(table.out, AllOf(HasSubstr("verb_final"), HasSubstr("pairs by source tokens"),
                               HasSubstr("train, target:")));
  const json report = json::parse(object.out);
  EXPECT_EQ(report["train"]["pairs"], 200);
  std::int64_t pairs = 0;
  for (const auto& [attractors, count] : report["attractors-valid"]["attractors"].items()) {
    EXPECT_THAT(attractors, ::testing::AnyOf("2", "3"));
    pairs += count.get<std::int64_t>();
  }
  EXPECT_EQ(pairs, 200);
  EXPECT_EQ(report["train"]["source_words"]["."], 200);
}

}  // namespace
}  // namespace polyhead::testing
