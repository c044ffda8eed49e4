#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "polyhead/config/yaml.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/config.h"
#include "tools/program.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string checkpoint_40() { return train::checkpoint_path(trained_run() + "/checkpoints", 40); }

const std::string few_lines = "a b c\n\nd e f g h\nq z\n";

TEST(Program, HelpsWithEveryCommand) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"train", "translate", "evaluate", "score", "heads", "average", "metrics",
                              "inspect", "config", "data", "bench"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + command + " "));
    const Outcome of_command = run({command, "--help"});
    EXPECT_EQ(of_command.status, 0);
    EXPECT_THAT(of_command.out, HasSubstr(std::string("Usage: polyhead ") + command + " "));
    EXPECT_THAT(of_command.err, IsEmpty());
  }
  EXPECT_THAT(help.out, HasSubstr("Exit status: 0 done; 1 out of memory"));
  EXPECT_THAT(run({"--version"}).out, StartsWith("polyhead "));
}

struct Failure {
  Arguments arguments;
  int status;
  std::string message;
};

/// Tries an empty argument for whatever the command or one below it takes a value for; the number of these.
int try_empty_arguments(const Arguments& command) {
  const auto with = [&](const Arguments& more) {
    Arguments arguments = command;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  int count = 0;
  std::string part;
  for (const std::string& line : lines_of(run(with({"--help"})).out)) {
    if (line.ends_with(':')) part = line;
    std::smatch parts;
    if (part == "Subcommands:" && std::regex_match(line, parts, std::regex("  ([a-z]+) .*")))
      count += try_empty_arguments(with({parts[1]}));
    if (!std::regex_match(line, parts, std::regex("  (--[a-z-]+|[A-Za-z]+) (?!Needs:|Excludes:)[^ ].*")))
      continue;
    const std::string name = parts[1];
    ++count;
    const Outcome outcome = run(with(part == "Options:" ? Arguments{name, ""} : Arguments{""}));
    EXPECT_EQ(outcome.status, 2) << name;
    EXPECT_THAT(outcome.err, StartsWith("polyhead: " + name + ": empty, expected a value; see polyhead "));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  return count;
}

TEST(Program, TakesNoEmptyArgument) { EXPECT_GT(try_empty_arguments({}), 80); }

TEST(Program, SaysWhatIsWrongWithItsUse) {
  const std::string run_folder = trained_run(), empty = write_text("empty.yaml", ""),
                    text = write_text("text", few_lines);
  const std::vector<Failure> failures{
      {{}, 2, "A subcommand is required"},
      {{"trian"}, 2, "no command \"trian\", expected one of train, translate,"},
      {{"translate"}, 2, "MODEL is required; see polyhead translate --help"},
      {{"translate", run_folder, "--foo"}, 2, "--foo"},
      {{"translate", run_folder, "--beam", "many"}, 2, "--beam"},
      {{"translate", run_folder, "--beam", "0"}, 2, "--beam"},
      {{"translate", run_folder, "--nbest", "5"}, 2, "decoding.nbest"},
      {{"translate", run_folder, "--set", "decoding.beam_size"}, 2, "--set decoding.beam_size"},
      {{"translate", run_folder, "--set", "decoding.bean_size=2"}, 2, "did you mean decoding.beam_size?"},
      {{"translate", run_folder, "--set", "model.d_model=32"},
       2,
       "--set model.d_model=32: a trained model keeps this setting (16), expected one of decoding.*, "
       "data.max_length"},
      {{"translate", run_folder, "--set", "data.lowercase=true"}, 2, "--set data.lowercase=true: a trained"},
      {{"translate", run_folder, "--set", "data.test_size=3"}, 2, "--set data.test_size=3: a trained"},
      {{"evaluate", run_folder, "--set", "data.lowercase=true"}, 2, "--set data.lowercase=true: a trained"},
      {{"evaluate", run_folder, "--set", "data.train_size=3"}, 2, "--set data.train_size=3: a trained"},
      {{"evaluate", run_folder, "--source", text, "--target", text, "--set", "data.task=files"},
       2,
       "--set data.task=files: a trained"},
      {{"evaluate", run_folder, "--source", text, "--target", text, "--split", "test"}, 2, "excludes"},
      {{"score", run_folder, "--source", text, "--target", text, "--set", "decoding.beam_size=2"},
       2,
       "--set decoding.beam_size=2: a trained"},
      {{"translate", run_folder, "--set", "decoding.batch_tokens=16777217"},
       2,
       "decoding.batch_tokens: 16777217, expected between 1 and 16777216"},
      {{"translate", run_folder, "--input", "/none"}, 3, "/none: No such file or directory"},
      {{"translate", "/none"}, 4, "/none: cannot read: No such file or directory"},
      {{"translate", fs::path(text).parent_path()}, 4, "no checkpoint in"},
      {{"translate", text}, 4, "is not a polyhead checkpoint"},
      {{"evaluate", run_folder, "--split", "all"}, 2, "--split"},
      {{"evaluate", run_folder, "--metrics", "bleu,blue"},
       2,
       "\"blue\", expected some of bleu, chrf, ter, exact_match, loss"},
      {{"evaluate", run_folder, "--source", text}, 2, "--target"},
      {{"evaluate", run_folder, "--set", "data.task=files"}, 2, "data.test: no files are given"},
      {{"score", run_folder, "--source", text}, 2, "--target is required"},
      {{"average", run_folder, "--last", "9"}, 2, "has 4 checkpoints, cannot average the last 9"},
      {{"average", run_folder, "--best", "9"}, 2, "training.keep_best"},
      {{"average", run_folder, "--best", "1", "--last", "1"}, 2, "excludes"},
      {{"average", "/none"}, 4, "/none: no checkpoint in /none/checkpoints"},
      {{"inspect", "/none"}, 4, "/none: cannot read"},
      {{"data"}, 2, "task is required; see polyhead data --help"},
      {{"data", "grammar", "--tset"}, 2, "--tset; see polyhead data --help"},
      {{"data", "grammar", "--out", "/none/x", "--seed", "-1"},
       2,
       "--seed: \"-1\", expected an integer from 0 to 18446744073709551615"},
      {{"data", "grammar", "--out", "/none/x", "--seed", "99999999999999999999999"},
       2,
       "--seed: \"99999999999999999999999\", expected an integer"},
      {{"data", "grammar", "--out", text, "--overwrite"}, 4, "a file, expected a folder"},
      {{"evaluate", run_folder, "--limit", "0"}, 2, "--limit: Value 0 not in range"},
      {{"heads", "mask", run_folder, "--limit", "0"}, 2, "--limit: Value 0 not in range"},
      {{"data", "grammar"}, 2, "--out or --statistics is required"},
      {{"data", "copi", "--out", "/none/x"}, 2, "copi not in {grammar,numbers,copy,"},
      {{"data", "copy", "--statistics"}, 2, "data copy: --statistics are of the task grammar alone"},
      {{"data", "copy", "--out", "/none/x", "--splits", "depth"},
       2,
       "--splits: copy has no split \"depth\"; expected one of train, valid, test"},
      {{"data", "grammar", "--out", "/none/x", "--size", "0"}, 2, "--size"},
      {{"data", "grammar", "--out", "/none/x", "--splits", "tset"},
       2,
       "grammar has no split \"tset\"; expected one of train,"},
      {{"data", "grammar", "--out", "/none/x", "--splits", "test,test"}, 2, "--splits: test is named twice"},
      {{"data", "grammar", "--out", text, "--splits", "test"}, 4, "a file, expected a folder"},
      {{"data", "grammar", "--out", "/proc/none", "--splits", "test"}, 4, "/proc/none: "},
      {{"metrics", "--hypothesis", text, "--reference", text, "--metrics", "blue"},
       2,
       "unknown metric 'blue'"},
      {{"metrics", "--hypothesis", text, "--reference", text, "--tokenize", "14a"}, 2, "--tokenize"},
      {{"metrics", "--hypothesis", text, "--reference", "/none"}, 3, "/none: No such file or directory"},
      {{"config", "/none.yaml"}, 2, "/none.yaml: no such file"},
      {{"config", empty}, 2, "empty.yaml: empty, expected a mapping of settings"},
      {{"config", fs::path(text).parent_path()}, 2, "a folder, expected a YAML configuration"},
      {{"train", "/none.yaml"}, 2, "/none.yaml: no such file"},
      {{"train", empty}, 2, "empty.yaml: empty"},
      {{"train", fs::path(text).parent_path()}, 2, "a folder, expected a YAML configuration"},
      {{"train", "--threads", "0"}, 2, "--threads"},
  };
  for (const Failure& failure : failures) {
    const Outcome outcome = run(failure.arguments);
    const std::string command = ::testing::PrintToString(failure.arguments);
    EXPECT_EQ(outcome.status, failure.status) << command << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("polyhead: "), HasSubstr(failure.message), EndsWith("\n")))
        << command;
    EXPECT_EQ(count_lines(outcome.err), 1) << command << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty()) << command;
  }
}

TEST(Program, NamesAnAlteredCheckpoint) {
  std::string bytes = read_text(checkpoint_40());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const std::string altered = write_text("altered.h5", bytes);
  for (const char* command : {"translate", "evaluate", "inspect"}) {
    const Outcome outcome = run({command, altered});
    EXPECT_EQ(outcome.status, 4);
    EXPECT_THAT(outcome.err, StartsWith("polyhead: " + altered + ": is damaged"));
  }
}

TEST(Program, SaysThatStdoutIsFull) {
  for (const Arguments& arguments :
       {Arguments{"config"}, Arguments{"--help"}, Arguments{"translate", trained_run()}}) {
    const Outcome outcome = Process(arguments, few_lines, "/dev/full").wait();
    EXPECT_EQ(outcome.status, 4);
    EXPECT_EQ(outcome.err, "polyhead: stdout: cannot write: No space left on device\n");
  }
}

TEST(Program, EndsQuietlyWhenItsReaderHasGone) {
  const std::string pipe = fresh_path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread reader([&] { ::close(::open(pipe.c_str(), O_RDONLY)); });
  Process process({"translate", trained_run()}, few_lines, pipe);
  reader.join();
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, 128 + SIGPIPE);
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Translate, GivesALineForEveryLine) {
  const std::string odd =
      "a b c\r\n\n  \n\xEF\xBB\xBF"
      "a\n\xFF\xFE b\nc\xE2\x80\xA8"
      "d\ne\xC2\x85"
      "f\ng\x0Bh\x0Ci\ri\n" +
      std::string("j\0k\n", 4) + "\xED\xA0\x80\n\xF0\x9F\x98\x80 z\n<s> </s> <unk>\n\xE2\x96\x81\nlast";
  const Outcome outcome = run({"translate", trained_run()}, odd);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(count_lines(outcome.out), count_lines(odd) + 1);
  EXPECT_EQ(outcome.err, "polyhead: stdin: 2 lines with invalid UTF-8, repaired with U+FFFD\n");
  const std::vector<std::string> lines = lines_of(outcome.out);
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[2], "");
  EXPECT_EQ(lines[0], lines_of(run({"translate", trained_run()}, "a b c").out)[0]);
}

TEST(Translate, TakesNoLinesAtAll) {
  const Outcome outcome = run({"translate", trained_run()}, "");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out + outcome.err, IsEmpty());
}

TEST(Translate, CropsLongLinesAndSaysSo) {
  std::string line = "a b";
  for (int i = 0; i < 100; ++i) line += " c";
  const Outcome outcome =
      run({"translate", trained_run(), "--set", "data.max_length=8"}, line + "\n" + line + "\na b c\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err,
            "polyhead: 2 lines of more than 8 pieces, cut there (the smaller of data.max_length and "
            "model.max_length - 1)\n");
  EXPECT_EQ(lines_of(outcome.out)[0], lines_of(run({"translate", trained_run()}, "a b c c c c c c").out)[0]);
  EXPECT_THAT(run({"translate", trained_run()}, line).err, HasSubstr("1 lines of more than 39 pieces"));
}

TEST(Translate, DependsNeitherOnThreadsNorOnWhereItReads) {
  const std::string input = write_text("input", few_lines), output = fresh_path("output");
  const Outcome from_file =
      run({"translate", checkpoint_40(), "--threads", "1", "--input", input, "--output", output});
  EXPECT_EQ(from_file.status, 0);
  EXPECT_THAT(from_file.out, IsEmpty());
  EXPECT_EQ(read_text(output), run({"translate", checkpoint_40(), "--threads", "3"}, few_lines).out);
}

TEST(Translate, GivesSeveralTranslations) {
  const Outcome outcome = run({"translate", trained_run(), "--beam", "4", "--nbest", "2"}, few_lines);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 7U);  // the empty line has one translation
  EXPECT_THAT(lines[0], StartsWith("0 ||| "));
  EXPECT_THAT(lines[1], StartsWith("0 ||| "));
  EXPECT_EQ(lines[2], "1 |||  ||| 0");
  const auto score = [](const std::string& line) { return std::stod(line.substr(line.rfind("||| ") + 4)); };
  EXPECT_GE(score(lines[0]), score(lines[1]));
  EXPECT_LT(score(lines[0]), 0);
}

/// Scores of what translate says with `settings`, against what it gave them. Returns the pieces that it wrote.
std::string expect_scores_of_the_beam(const std::string& text, const Arguments& settings) {
  Arguments arguments{"translate", trained_run(), "--pieces", "--scores"};
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  const Outcome beam = run(arguments, text);
  EXPECT_EQ(beam.status, 0) << beam.err;
  std::string pieces;
  std::vector<double> expected;
  for (const std::string& line : lines_of(beam.out)) {
    expected.push_back(std::stod(line));
    pieces += line.substr(line.find('\t') + 1) + "\n";
  }
  const Outcome scored = run({"score", trained_run(), "--source", write_text("source", text), "--target",
                              write_text("target", pieces), "--pieces"});
  EXPECT_EQ(scored.status, 0) << scored.err;
  EXPECT_EQ(scored.err, beam.err);
  const std::vector<std::string> scores = lines_of(scored.out);
  EXPECT_EQ(scores.size(), expected.size());
  for (std::size_t i = 0; i < std::min(scores.size(), expected.size()); ++i)
    EXPECT_NEAR(std::stod(scores[i]), expected[i], 1e-4) << "line " << i;
  return pieces;
}

TEST(Score, IsWhatTheBeamGave) {
  const std::string pieces = expect_scores_of_the_beam(few_lines, {});
  EXPECT_THAT(pieces, Not(HasSubstr("<s>")));
  const std::string source = write_text("source", few_lines), target = write_text("target", pieces);
  EXPECT_EQ(run({"score", trained_run(), "--source", source, "--target", target}).out,
            run({"score", trained_run(), "--source", source, "--target", target, "--pieces"}).out);
}

TEST(Score, IsWhatTheBeamGaveToTranslationsCutShort) {
  const Arguments short_limit{"--set", "decoding.method=sampling",   "--set", "decoding.max_length_ratio=0",
                              "--set", "decoding.max_length_extra=2"};
  const std::string pieces = expect_scores_of_the_beam("a b c d e f\n\ng h i j k l\n", short_limit);
  EXPECT_THAT(pieces, HasSubstr(" <s>\n"));
}

TEST(Score, IsWhatTheBeamGaveToSourcesCutShort) {
  std::string line = "a b";
  for (int i = 0; i < 100; ++i) line += " c";
  expect_scores_of_the_beam("a b\n" + line + "\n", {});
}

TEST(Score, OfAnEmptyPairIsCertain) {
  const std::string source = write_text("source", "\n\na\n"), target = write_text("target", "\na\n\n");
  for (const Arguments& more : {Arguments{}, Arguments{"--pieces"}}) {
    Arguments arguments{"score", trained_run(), "--source", source, "--target", target};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::vector<std::string> scores = lines_of(run(arguments).out);
    ASSERT_EQ(scores.size(), 3U);
    EXPECT_EQ(scores[0], "0");
    EXPECT_LT(std::stod(scores[1]), 0);
    EXPECT_LT(std::stod(scores[2]), 0);
  }
}

TEST(Score, NamesAllTargetsThatAreTooLong) {
  std::string line = "a";
  for (int i = 0; i < 50; ++i) line += " b";
  const Outcome outcome = run({"score", trained_run(), "--source", write_text("source", "a\na\na\n"),
                               "--target", write_text("target", line + "\na\n" + line + "\n")});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.err,
            "polyhead: expected 1 to 40 tokens (model.max_length), but target 1 has 52, target 3 has 52\n");
}

TEST(Score, NeedsEqualNumbersOfLines) {
  const std::string source = write_text("source", "a\nb\nc\n"), target = write_text("target", "a\nb");
  const Outcome outcome = run({"score", trained_run(), "--source", source, "--target", target});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.err, "polyhead: " + source + " has 3 lines, but " + target + " has 2\n");
}

TEST(Evaluate, ReportsScoresWithSignatures) {
  const std::string output = fresh_path("output");
  const Outcome outcome = run({"evaluate", trained_run(), "--split", "valid", "--json", "--output", output,
                               "--metrics", "bleu,chrf,ter,exact_match,loss,perplexity,token_accuracy"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.size(), 7U);
  EXPECT_THAT(report.at("bleu").at("signature").get<std::string>(),
              StartsWith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"));
  EXPECT_EQ(count_lines(read_text(output)), 20);
  // What training validated is what evaluation measures.
  json logged;
  for (const std::string& line : lines_of(read_text(trained_run() + "/train.jsonl"))) {
    const json entry = json::parse(line);
    if (entry.contains("validation")) logged[entry.at("step").dump()] = entry.at("validation");
  }
  const json state = json::parse(run({"inspect", trained_run(), "--json"}).out);
  const json& best = logged.at(state.at("step").dump());
  EXPECT_NEAR(report.at("loss").at("score"), best.at("loss"), 1e-6);
  EXPECT_NEAR(report.at("perplexity").at("score"), best.at("perplexity"), 1e-4);
  EXPECT_NEAR(report.at("token_accuracy").at("score"), best.at("token_accuracy"), 1e-6);
}

TEST(Evaluate, MeasuresGivenFilesAsMetricsDoes) {
  const std::string source = write_text("source", few_lines), first = write_text("first", few_lines),
                    second = write_text("second", "a b c d\nx\nd e f\nq z\n"), output = fresh_path("output");
  const Outcome outcome =
      run({"evaluate", trained_run(), "--source", source, "--target", first, "--target", second, "--metrics",
           "bleu,chrf", "--set", "evaluation.tokenize=none", "--output", output, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Outcome metrics = run({"metrics", "--hypothesis", output, "--reference", first, "--reference", second,
                               "--metrics", "bleu,chrf", "--tokenize", "none", "--json"});
  EXPECT_EQ(json::parse(outcome.out), json::parse(metrics.out));
  EXPECT_THAT(outcome.out, HasSubstr("nrefs:2|"));
}

TEST(Evaluate, NeedsEqualNumbersOfLines) {
  const std::string source = write_text("source", "a\nb\nc\n"), target = write_text("target", "a\nb\n");
  const Outcome outcome = run({"evaluate", trained_run(), "--source", source, "--target", target});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.err, "polyhead: " + source + " has 3 lines, but " + target + " has 2\n");
}

TEST(Average, WritesACheckpointThatTranslates) {
  const Outcome outcome = run({"average", trained_run(), "--last", "3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, trained_run() + "/average.h5\n");
  const std::string path = trained_run() + "/average.h5", again = fresh_path("average.h5");
  EXPECT_EQ(count_lines(run({"translate", path}, few_lines).out), 4);
  const json description = json::parse(run({"inspect", path, "--json"}).out);
  EXPECT_EQ(description.at("state").at("averaged"), (json{20, 30, 40}));
  EXPECT_EQ(description.at("has_optimizer"), false);
  EXPECT_EQ(run({"average", trained_run(), "--last", "3", "--out", again}).out, again + "\n");
  EXPECT_TRUE(read_text(path) == read_text(again));
  const std::string before = read_text(again);
  const Outcome refused = run({"average", trained_run(), "--best", "1", "--out", again});
  EXPECT_EQ(refused.status, 4);
  EXPECT_EQ(refused.err, "polyhead: " + again + ": exists already; give another --out\n");
  EXPECT_EQ(read_text(again), before);
  fs::remove(again);
  EXPECT_EQ(run({"average", trained_run(), "--best", "1", "--out", again}).status, 0);
}

TEST(Metrics, ComparesFiles) {
  const std::string reference = write_text("reference", "the cat sat on the mat .\nHello there , world !\n");
  const Outcome same = run({"metrics", "--hypothesis", reference, "--reference", reference, "--json",
                            "--metrics", "bleu,chrf,ter,exact_match,token_accuracy"});
  ASSERT_EQ(same.status, 0) << same.err;
  const json report = json::parse(same.out);
  for (const char* metric : {"bleu", "chrf", "exact_match", "token_accuracy"})
    EXPECT_NEAR(report.at(metric).at("score"), 100, 1e-9);
  EXPECT_EQ(report.at("ter").at("score"), 0);
  const std::string upper = write_text("upper", "THE CAT SAT ON THE MAT .\nHELLO THERE , WORLD !\n");
  const Outcome lower = run({"metrics", "--hypothesis", upper, "--reference", reference, "--lowercase",
                             "--json", "--smooth", "add-k", "--smooth-value", "2", "--word-order", "2"});
  const json lower_report = json::parse(lower.out);
  EXPECT_EQ(lower_report.at("bleu")
                .at("signature")
                .get<std::string>()
                .find("nrefs:1|case:lc|eff:no|tok:13a|smooth:add-k[2.00]|"),
            0U);
  EXPECT_THAT(lower_report.at("chrf").at("signature").get<std::string>(), HasSubstr("nw:2"));
  const Outcome table =
      run({"metrics", "--hypothesis", reference, "--reference", reference, "--metrics", "bleu"});
  EXPECT_THAT(table.out, AllOf(StartsWith("bleu    100.0000  nrefs:1|"), EndsWith("\n")));
}

TEST(Metrics, ScoresSentences) {
  const std::string reference = write_text("reference", "a b c d\ne f g h\n"),
                    hypothesis = write_text("hypothesis", "a b c d\nx\n");
  const Outcome outcome = run({"metrics", "--hypothesis", hypothesis, "--reference", reference, "--sentences",
                               "--metrics", "exact_match,ter"});
  EXPECT_EQ(outcome.out, "100\t0\n0\t100\n");
}

TEST(Metrics, TestsADifferenceFromABaseline) {
  std::string right, wrong;
  for (int i = 0; i < 40; ++i) {
    right += "the small cat sat on the mat .\n";
    wrong += i % 4 == 0 ? "a dog stood by the mat .\n" : "the small cat sat on the mat .\n";
  }
  const std::string reference = write_text("reference", right), baseline = write_text("baseline", wrong);
  const auto compare = [&](const Arguments& more) {
    Arguments arguments{"metrics",    "--hypothesis", reference,   "--reference",         reference,
                        "--baseline", baseline,       "--metrics", "exact_match,bleu,ter"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const Outcome outcome = compare({"--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out), test = report.at("exact_match").at("significance");
  EXPECT_EQ(report["exact_match"]["score"], 100);
  EXPECT_EQ(test["test"], "bootstrap");
  EXPECT_EQ(test["draws"], 10000);
  EXPECT_EQ(test["baseline"], 75);
  EXPECT_EQ(test["difference"], 25);
  EXPECT_NEAR(test["low"], 12.5, 2.6);  // 25 -+ 1.96 standard errors of 6.8, in steps of 2.5
  EXPECT_NEAR(test["high"], 37.5, 2.6);
  EXPECT_LT(test["p"], 0.01);
  EXPECT_LT(report["ter"]["significance"]["difference"], 0);
  EXPECT_EQ(compare({"--json", "--threads", "3"}).out, outcome.out);

  const json randomized =
      json::parse(compare({"--json", "--significance", "randomization", "--draws", "2000"}).out);
  // All ten differences have to be of one sign: 2 of 2¹⁰.
  EXPECT_NEAR(randomized["exact_match"]["significance"]["p"], 2. / 1024, 0.005);
  EXPECT_FALSE(randomized["exact_match"]["significance"].contains("low"));
  EXPECT_THAT(compare({}).out, AllOf(HasSubstr("+25.0000"), HasSubstr("95% interval")));
  EXPECT_EQ(run({"metrics", "--hypothesis", reference, "--reference", reference, "--draws", "10"}).status, 2);
  const Outcome shorter = run({"metrics", "--hypothesis", reference, "--reference", reference, "--baseline",
                               write_text("shorter", "one line\n")});
  EXPECT_EQ(shorter.status, 3);
  EXPECT_THAT(shorter.err, HasSubstr("shorter"));
}

TEST(Metrics, NeedsEqualNumbersOfLines) {
  const std::string hypothesis = write_text("hypothesis", "a\nb\nc\n"),
                    reference = write_text("reference", "a\nb\n");
  const Outcome outcome = run({"metrics", "--hypothesis", hypothesis, "--reference", reference});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.err, "polyhead: " + hypothesis + " has 3 lines, but " + reference + " has 2\n");
}

TEST(Inspect, DescribesACheckpoint) {
  const json description = json::parse(run({"inspect", checkpoint_40(), "--json"}).out);
  EXPECT_EQ(description.at("step"), 40);
  EXPECT_EQ(description.at("has_optimizer"), true);
  EXPECT_EQ(description.at("vocabulary").at("kind"), "word");
  std::int64_t count = 0;
  json query;
  for (const json& p : description.at("parameters")) {
    count += p.at("count").get<std::int64_t>();
    if (p.at("path") == "encoder/layers/0/self_attention/query/weight") query = p.at("shape");
  }
  EXPECT_EQ(query, (json{16, 16}));
  EXPECT_EQ(description.at("parameter_count"), count);
  EXPECT_FALSE(description.at("state").at("best").empty());
  const auto config = config::parse<train::Config>(description.at("config").get<std::string>(), "config");
  EXPECT_EQ(config.model.d_model, 16);
  const Outcome text = run({"inspect", trained_run()});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("encoder/layers/0/self_attention/query/weight"), HasSubstr("[16,16]"),
                              HasSubstr("d_model: 16"), HasSubstr("best: ")));
}

TEST(Config, IsResolvedAndReadsBack) {
  const Outcome outcome = run({"config", tiny_config(), "--set", "training.max_steps=7"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("max_steps: 7\n"), HasSubstr("beta2: 0.98\n")));
  EXPECT_EQ(run({"config", write_text("resolved.yaml", outcome.out)}).out, outcome.out);
  EXPECT_THAT(run({"config"}).out, StartsWith("name: grammar\n"));
  EXPECT_THAT(run({"config", "--keys"}).out, HasSubstr("| `training.batch_tokens`"));
}

TEST(Config, TellsAllThatIsWrong) {
  const std::string path =
      write_text("wrong.yaml", "model:\n  heads: 6\n  d_modle: 128\ntraining: {max_steps: many}\n");
  const Outcome outcome = run({"config", path, "--set", "seed=-1"});
  EXPECT_EQ(outcome.status, 2);
  const std::vector<std::string> lines = lines_of(outcome.err);
  ASSERT_EQ(lines.size(), 4U) << outcome.err;
  EXPECT_THAT(lines[0], StartsWith("polyhead: " + path + ":2: model.heads: 6 does not divide d_model 512"));
  EXPECT_EQ(lines[1], "polyhead: " + path + ":3: model.d_modle: unknown key, did you mean model.d_model?");
  EXPECT_THAT(lines[2],
              StartsWith("polyhead: " + path + ":4: training.max_steps: \"many\", expected an integer"));
  EXPECT_THAT(lines[3], StartsWith("polyhead: --set seed=-1: seed: -1, expected "));
}

TEST(Commands, SayThatAnOlderCheckpointIsTaken) {
  const std::string folder = fresh_path("damaged");
  fs::copy(trained_run(), folder, fs::copy_options::recursive);
  std::set<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(folder + "/checkpoints"))
    if (entry.path().extension() == ".h5") checkpoints.insert(entry.path());
  const fs::path newest = *checkpoints.rbegin();
  fs::resize_file(newest, fs::file_size(newest) / 2);
  const Outcome outcome = run({"translate", folder}, "a b\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("polyhead: " + newest.string() + ": is truncated"));
  EXPECT_THAT(outcome.err, HasSubstr("; taking " + folder + "/checkpoints/step-"));
  EXPECT_EQ(count_lines(outcome.err.substr(0, outcome.err.find("instead") + 8)), 1);
}

}  // namespace
}  // namespace polyhead::testing
