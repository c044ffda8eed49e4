#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "faults/faults.h"
#include "support/surroundings.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A command that writes files to a folder.
struct Writing {
  std::string name;
  std::function<Arguments(const std::string& folder)> arguments;
  std::string input = {};
  bool replaces = true;  ///< what is there already; else it refuses to
};

std::vector<Writing> commands() {
  const std::string& run = trained_run();
  return {
      {"average",
       [&](const std::string& folder) {
         return Arguments{"average", run, "--out", folder + "/a.h5"};
       },
       "", false},
      {"heads prune",
       [&](const std::string& folder) {
         return Arguments{"heads", "prune",          run,        "--heads",         "encoder.0.1",
                          "--out", folder + "/p.h5", "--config", folder + "/p.yaml"};
       },
       "", false},
      {"evaluate",
       [&](const std::string& folder) {
         return Arguments{"evaluate", run, "--limit", "3", "--output", folder + "/out.txt"};
       }},
      {"translate",
       [&](const std::string& folder) {
         return Arguments{"translate", run, "--output", folder + "/out.txt"};
       },
       "a b\n"},
      {"report",
       [&](const std::string& folder) {
         return Arguments{"report", run, "--out", folder + "/r.html"};
       }},
      {"data grammar",
       [](const std::string& folder) {
         return Arguments{"data",  "grammar", "--out", folder,       "--splits",
                          "train", "--size",  "5",     "--overwrite"};
       }},
  };
}

using Contents = std::map<std::string, std::string>;

Contents contents_of(const std::string& folder) {
  Contents contents;
  for (const std::string& file : files_in(folder)) contents[file] = read_text(folder + "/" + file);
  return contents;
}

/// What a command writes, over what has been there where it replaces that.
class Rewriting {
 public:
  explicit Rewriting(const Writing& command) : command_(command) {
    const std::string folder = fresh_path("files");
    fs::create_directory(folder);
    const FaultyOutcome outcome = run({}, folder);
    if (outcome.status != 0) throw std::runtime_error(command.name + ": " + outcome.err);
    new_ = contents_of(folder);
    for (const auto& [file, content] :
         command.replaces ? new_ : Contents())  // annotations say which files are the command's
      old_[file] = (file == "annotations.jsonl" ? R"({"split":"train",)" : "") + ("old " + file);
    calls_ = run({}, folder_of_old()).calls;
  }
  const Contents& after() const { return new_; }
  const Contents& before() const { return old_; }
  const std::vector<Call>& calls() const { return calls_; }
  std::string folder_of_old() const {
    std::string folder = fresh_path("files");
    fs::create_directory(folder);
    for (const auto& [file, content] : old_) std::ofstream(folder + "/" + file) << content;
    return folder;
  }
  FaultyOutcome run(const Fault& fault, const std::string& folder) const {
    return run_with(fault, folder, command_.arguments(folder), command_.input);
  }

 private:
  const Writing& command_;
  Contents new_, old_;
  std::vector<Call> calls_;
};

TEST(FileFaults, LeaveOldFilesOrNewOnesAndAnError) {
  const std::vector<std::string> errors{"EIO", "ENOSPC", "full"};
  std::size_t next = 0;
  for (const Writing& command : commands()) {
    const Rewriting files(command);
    ASSERT_FALSE(files.calls().empty()) << command.name;
    for (const std::int64_t number : numbers_of(files.calls(), command.name == "average" ? 1 : 6)) {
      const std::string& error = errors[next++ % errors.size()];
      const std::string folder = files.folder_of_old();
      const FaultyOutcome outcome = files.run({number, error}, folder);
      const Call& call = outcome.calls.at(static_cast<std::size_t>(number - 1));
      SCOPED_TRACE(command.name + ": " + call.name + ' ' + call.path + ' ' + error);
      expect_file_error(outcome, call, error);
      // What may not be removed is still there.
      if (call.name == "remove") continue;
      expect_no_temporaries(folder);
      const Contents found = contents_of(folder);
      if (command.replaces) {
        ASSERT_EQ(found.size(), files.after().size());
      }
      bool all_old = true, all_new = true;
      for (const auto& [file, content] : found) {
        const auto old = files.before().find(file);
        const bool is_old = old != files.before().end() && content == old->second;
        EXPECT_TRUE(is_old || content == files.after().at(file)) << file;
        all_old &= is_old;
        all_new &= content == files.after().at(file);
      }
      EXPECT_TRUE(command.name != "data grammar" || all_old || all_new) << "files of one folder go together";
    }
  }
}

TEST(FileFaults, AKillLeavesWhatTheNextTimeMakesWhole) {
  for (const Writing& command : commands()) {
    const Rewriting files(command);
    for (const std::int64_t number : numbers_of(files.calls(), command.replaces ? 9 : 1)) {
      const std::string folder = files.folder_of_old();
      const FaultyOutcome killed = files.run({number, "kill"}, folder);
      SCOPED_TRACE(command.name + ": " + killed.calls.back().name + ' ' + killed.calls.back().path);
      ASSERT_EQ(killed.status, 128 + SIGKILL) << killed.err;
      const bool done = !command.replaces && contents_of(folder) == files.after();
      const FaultyOutcome again = files.run({}, folder);
      EXPECT_EQ(again.status, done ? 4 : 0) << again.err;
      if (done) {
        EXPECT_THAT(again.err, HasSubstr(": exists already; give another --out\n"));
      }
      EXPECT_EQ(contents_of(folder), files.after());
    }
  }
}

/// What each of the commands says where its folder may not be changed.
void expect_refusals(const std::function<void(const std::string&)>& make_unchangeable,
                     const std::string& why) {
  for (const Writing& command : commands()) {
    const std::string folder = fresh_path("folder");
    fs::create_directory(folder);
    make_unchangeable(folder);
    // A folder of data is written beside it.
    const Outcome outcome =
        run(command.arguments(command.name == "data grammar" ? folder + "/data" : folder), command.input);
    EXPECT_EQ(outcome.status, 4) << command.name << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + folder + "/")) << command.name;
    EXPECT_THAT(outcome.err, HasSubstr(why + "\n")) << command.name;
    EXPECT_TRUE(fs::is_empty(folder)) << command.name;
  }
}

TEST(FileFaults, WhereNothingMayBeWrittenIsNamed) {
  with_permissions([] {
    expect_refusals(
        [](const std::string& folder) {
          fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
        },
        "Permission denied");
  });
  if (!with_own_mounts([] { expect_refusals(make_read_only, "Read-only file system"); }))
    GTEST_SKIP() << "no mounts may be made: read-only file systems are errors of single calls";
}

TEST(FileFaults, WhatMayNotBeReadIsNamed) {
  const std::string secret = write_text("secret", "a b\n"), hidden = fresh_path("run"),
                    &model = trained_run();
  fs::copy(model, hidden, fs::copy_options::recursive);
  const std::string newest = hidden + "/checkpoints/step-00000040.h5";
  for (const std::string& path : {secret, newest, hidden + "/checkpoints"})
    fs::permissions(path, fs::perms::none);
  struct Reading {
    int status;
    std::string named;
    Arguments arguments;
  };
  with_permissions([&] {
    for (const Reading& reading : std::vector<Reading>{
             {2, secret, {"config", secret}},
             {2, secret, {"ablate", secret}},
             {3, secret, {"translate", model, "--input", secret}},
             {3, secret, {"score", model, "--source", secret, "--target", secret}},
             {3, secret, {"metrics", "--hypothesis", secret, "--reference", secret}},
             {3,
              secret,
              {"train", tiny_config(), "--out", fresh_path("run"), "--set", "data.task=files", "--set",
               "data.train.source=" + secret, "--set", "data.train.target=" + secret}},
             {4, hidden, {"inspect", newest}},
             {4, hidden, {"translate", hidden}},
             {4, hidden, {"train", tiny_config(), "--out", hidden, "--resume"}}}) {
      const Outcome outcome = run(reading.arguments);
      const std::string shown = ::testing::PrintToString(reading.arguments);
      EXPECT_EQ(outcome.status, reading.status) << shown << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(reading.named)) << shown;
      EXPECT_THAT(outcome.err, HasSubstr("Permission denied")) << shown;
    }
    fs::permissions(hidden + "/checkpoints", fs::perms::owner_all);
    EXPECT_THAT(run({"inspect", newest}).err, HasSubstr(newest + ": cannot read: Permission denied"));
  });
}

/// Commands whose result goes to stdout.
std::vector<Writing> printing() {
  const std::string& run = trained_run();
  const auto always = [](const Arguments& arguments) {
    return [arguments](const std::string&) { return arguments; };
  };
  const std::string text = write_text("text", "a b\n");
  return {{"translate", always({"translate", run}), "a b\n"},
          {"evaluate", always({"evaluate", run, "--limit", "2", "--json"})},
          {"score", always({"score", run, "--source", text, "--target", text})},
          {"metrics", always({"metrics", "--hypothesis", text, "--reference", text})},
          {"inspect", always({"inspect", run + "/checkpoints/step-00000040.h5"})},
          {"config", always({"config", tiny_config()})},
          {"heads", always({"heads", run, "--limit", "2"})},
          {"help", always({"--help"})}};
}

TEST(OutputFaults, AFullOrClosedStdoutIsAnError) {
  for (const Writing& command : printing())
    for (const auto& [out, why] :
         {std::pair<std::string, std::string>{"/dev/full", "No space left on device"},
          {Process::closed, "Bad file descriptor"}}) {
      const Outcome outcome = Process(command.arguments(""), command.input, out).wait();
      EXPECT_EQ(outcome.status, 4) << command.name << ": " << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("polyhead: stdout: cannot write: " + why + "\n")) << command.name;
    }
}

TEST(OutputFaults, WhatIsNoFileIsWrittenTo) {
  const Arguments translate{"translate", trained_run(), "--output"};
  Arguments arguments = translate;
  arguments.emplace_back("/dev/full");
  const Outcome full = run(arguments, "a b\n");
  EXPECT_EQ(full.status, 4);
  EXPECT_THAT(full.err, HasSubstr("polyhead: /dev/full: cannot write: No space left on device\n"));
  arguments.back() = scratch_folder();
  const Outcome folder = run(arguments, "a b\n");
  EXPECT_EQ(folder.status, 4);
  EXPECT_THAT(folder.err, HasSubstr("polyhead: " + scratch_folder() + ": cannot write: Is a directory\n"));
  arguments.back() = "/dev/null";
  EXPECT_EQ(run(arguments, "a b\n").status, 0);
  // A link stays one, and what it names is replaced.
  const std::string target = write_text("target", "old"), link = fresh_path("link");
  fs::create_symlink(target, link);
  arguments.back() = link;
  EXPECT_EQ(run(arguments, "a b\n").status, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_NE(read_text(target), "old");
}

}  // namespace
}  // namespace polyhead::testing
