#include "polyhead/experiment/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "experiment/experiments.h"
#include "polyhead/core/error.h"
#include "polyhead/experiment/results.h"
#include "support/browser.h"

namespace polyhead::testing {
namespace {

using experiment::Measure;
using experiment::Outcome;
using experiment::report_data;
using experiment::report_page;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Twenty sentences, of which `right` are translated as they should be.
std::string sentences_of(std::uint64_t seed, int right) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += json{{"source", std::to_string(seed)},
                 {"target", "a"},
                 {"translation", i < right ? "a" : "b"},
                 {"probes", json::array()}}
                .dump() +
            '\n';
  return text;
}

/// A folder as `polyhead ablate` leaves it: three numbers of heads by two seeds, of which one diverged.
void write_experiment(const Folder& folder) {
  const auto experiment = small_experiment(
      "name: few & <many> heads\ngrid: {model.heads: [1, 2, 4]}\nseeds: [5, 6]\nbaseline: {model.heads: 4}\n"
      "evaluation: {metrics: [exact_match], equivalence: {exact_match: 30}}\n");
  folder.write("experiment.yaml", experiment::dump(experiment));
  const experiment::Plan plan = experiment::plan(experiment);
  experiment::Results results(folder.path);
  int i = 0;
  for (const auto& cell : plan.cells) {
    Outcome outcome{
        .costs = {1000 + i, 2e6, 300.5}, .learning_rate = 0.02, .step = 12, .tokens_per_second = 900};
    for (const std::optional<std::string>& of : {std::optional<std::string>{}, {"names"}, {"agreement"}})
      outcome.measures.push_back({.split = "test",
                                  .metric = "exact_match",
                                  .phenomenon = of,
                                  .value = 50 + 5 * i + (of ? 1 : 0),
                                  .n = 20});
    if (++i == 4) outcome = {.status = experiment::Status::diverged, .message = "</script><b>loss</b>"};
    results.put(cell.id, outcome);
    const std::string run = folder.path + "/cells/" + cell.id;
    std::filesystem::create_directories(run);
    folder.write("cells/" + cell.id + "/sentences-test.jsonl", sentences_of(cell.seed, 10 + i - 1));
    folder.write("cells/" + cell.id + "/train.jsonl", R"({"step":1,"loss":3.5,"seconds":1})"
                                                      "\n"
                                                      R"({"step":2,"loss":2.5,"seconds":2})"
                                                      "\n"
                                                      R"({"step":2,"validation":{"loss":2.25}})"
                                                      "\n");
  }
  results.write(results.rows(plan.cells, experiment::base_id(experiment), experiment.config.evaluation));
}

json data_of(const Folder& folder) { return json::parse(report_data(folder.path, 1)); }

TEST(Report, HoldsAnExperiment) {
  const Folder folder;
  write_experiment(folder);
  const json data = data_of(folder);
  EXPECT_EQ(data["name"], "few & <many> heads");
  EXPECT_THAT(data["missing"], IsEmpty());
  EXPECT_THAT(data["warnings"][0].get<std::string>(), HasSubstr("1 model diverged: counted"));
  EXPECT_EQ(data["facts"], json({"experiment", "5 trained models", "1 diverged", "2 seeds"}));
  EXPECT_EQ(data["experiment"]["unfinished"], nullptr);
  const json& e = data["experiment"];
  EXPECT_EQ(e["keys"], json({"model.heads"}));
  EXPECT_EQ(e["rows"].size(), 5U * 3);
  EXPECT_EQ(e["cells"].size(), 6U);
  EXPECT_EQ(e["cells"][3]["status"], "diverged");
  ASSERT_EQ(e["points"].size(), 3U * 3);
  const json& first = e["points"][0];
  EXPECT_EQ(first["grid"]["model.heads"], 1);
  EXPECT_EQ(first["phenomenon"], nullptr);
  EXPECT_EQ(first["mean"], 52.5);  // 50 and 55: ± 12.706 · 3.5355/√2
  EXPECT_NEAR(first["low"], 52.5 - 31.7655, 1e-3);
  EXPECT_EQ(first["difference"]["mean"], -20);
  EXPECT_EQ(e["bootstrap"], json({{"draws", 10000}, {"missing", nullptr}}));
  EXPECT_LT(first["bootstrap"]["low"], 45);
  EXPECT_GT(first["bootstrap"]["high"], 60);
  EXPECT_LT(first["difference"]["bootstrap"]["low"], -30);
  EXPECT_GT(first["difference"]["bootstrap"]["high"], -10);
  for (const json& point : e["points"])
    if (point["grid"]["model.heads"] == 2) {
      EXPECT_EQ(point["seeds"], 1);
      EXPECT_EQ(point["diverged"], 1);
      EXPECT_EQ(point["low"], nullptr);
    }
  ASSERT_EQ(data["curves"].size(), 6U);
  EXPECT_EQ(data["curves"][0]["updates"]["loss"], json({3.5, 2.5}));
  EXPECT_EQ(data["curves"][0]["validations"], json({{"step", {2.0}}, {"loss", {2.25}}}));
}

TEST(Report, SaysWhatAnExperimentStillLacks) {
  const Folder folder;
  const auto experiment = small_experiment("grid: {model.heads: [1, 2]}\nseeds: [5, 6]\n");
  folder.write("experiment.yaml", experiment::dump(experiment));
  const experiment::Plan plan = experiment::plan(experiment);
  experiment::Results results(folder.path);
  const auto warnings = [&](std::size_t cell, const Outcome& outcome) {
    results.put(plan.cells[cell].id, outcome);
    results.write(results.rows(plan.cells, experiment::base_id(experiment), experiment.config.evaluation));
    return data_of(folder)["warnings"];
  };
  warnings(0, {});
  EXPECT_EQ(warnings(1, {.status = experiment::Status::failed})[1], "2 of 4 cells have no result yet");
  const json facts = data_of(folder)["facts"];
  EXPECT_EQ(facts, json({"experiment", "1 trained model", "1 failed", "2 seeds"}));
  const json last = warnings(2, {.status = experiment::Status::diverged});
  EXPECT_EQ(last[0], "1 model diverged, 1 model failed: counted in the table of all points, and named below");
  EXPECT_EQ(last[1], "1 of 4 cells has no result yet");
}

TEST(Report, NamesFilesThatCannotBeRead) {
  const auto message = [](const std::string& path) { return error_of([&] { report_data(path, 1); }); };
  const Folder folder;
  EXPECT_EQ(message(folder.path + "/none"), folder.path + "/none: no such file or folder");
  EXPECT_EQ(message(folder.path), folder.path +
                                      ": neither an experiment (experiment.yaml, results.jsonl) nor a run "
                                      "(config.yaml, train.jsonl, checkpoints)");
  write_experiment(folder);
  std::ofstream(folder.path + "/results.jsonl", std::ios::app) << "{\"cell\": \"12\n";
  EXPECT_THAT(message(folder.path), HasSubstr("/results.jsonl:17: "));
}

TEST(Report, HoldsARunWithoutCheckpoints) {
  const Folder folder;
  folder.write("config.yaml", "name: early\ndata: {task: copy}\ntraining: {max_steps: 600}\n");
  std::string log;
  for (int step = 1; step <= 500; ++step)
    log += json({{"step", step}, {"loss", step}, {"grad_norm", step % 2}}).dump() + '\n';
  const json heads = json::parse(R"([{"kind":"encoder","layer":0,"head":1,"entropy":0.5}])");
  log.insert(log.rfind('}'), R"(,"diagnostics":{"heads":)" + heads.dump() + "}");
  folder.write("train.jsonl", log + R"({"step":501,"lo)");  // as a killed process leaves it
  json data = data_of(folder);
  EXPECT_EQ(data["name"], "early");
  const json& updates = data["curves"][0]["updates"];
  EXPECT_EQ(updates["step"].size(), 167U);  // of 3 each, so that they are at most 200
  EXPECT_EQ(updates["step"][0], 3);
  EXPECT_EQ(updates["loss"][0], 2);
  EXPECT_EQ(updates["step"].back(), 500);
  EXPECT_EQ(updates["loss"].back(), 499.5);
  EXPECT_EQ(data["curves"][0]["diagnostics"], json::array({{{"step", 500.0}, {"heads", heads}}}));
  EXPECT_FALSE(data.contains("attention"));
  EXPECT_FALSE(data.contains("heads"));
  std::string commands;
  for (const json& missing : data["missing"]) commands += missing["command"].get<std::string>() + '\n';
  EXPECT_THAT(commands, AllOf(HasSubstr("polyhead heads importance " + folder.path + " --json > " +
                                        folder.path + "/importance.json\n"),
                              HasSubstr("polyhead train " + folder.path + "/config.yaml --out " +
                                        folder.path + " --resume\n")));
  folder.write("train.jsonl", "{\"step\":1}\nstep 2\n{\"step\":3}\n");
  EXPECT_THAT(error_of([&] { report_data(folder.path, 1); }),
              HasSubstr("/train.jsonl:2: expected a JSON object with a step"));
  folder.write("train.jsonl", R"({"step":1,"diagnostics":{"heads":3}})"
                              "\n");
  EXPECT_THAT(error_of([&] { report_data(folder.path, 1); }),
              HasSubstr("/train.jsonl:1: expected diagnostics of heads, but heads is 3, expected a list"));
}

const std::string small_run = "name: small\ndata: {task: copy}\ntraining: {max_steps: 600}\n";

/// What `polyhead heads ... --json` writes of one head, by the names of the files of a run folder.
std::map<std::string, json> head_files() {
  const json of = {{"checkpoint", "c.h5"}, {"step", 7}},
             head = {{"kind", "encoder"}, {"layer", 0}, {"head", 0}};
  const json change = {{"loss", {{"score", 2.5}, {"change", 0.5}, {"q", 0.01}}}};
  std::map<std::string, json> files{
      {"importance", of}, {"masking", of}, {"all_but_one", of}, {"curve", of}, {"heads", of}};
  json entry = head;
  entry["importance"] = 0.25;
  files["importance"].update({{"heads", {entry}}, {"rank_correlations", json::array()}});
  files["masking"].update({{"method", "zero"}, {"sets", {{{"name", "encoder.0.0"}, {"figures", change}}}}});
  files["masking"]["sets"].push_back({{"name", "encoder.0.0,encoder.0.1"}, {"figures", change}});
  files["all_but_one"].update(
      {{"method", "zero"}, {"sets", {{{"name", "all but encoder.0.0"}, {"figures", change}}}}});
  files["curve"].update({{"metrics", {"loss"}},
                         {"curves",
                          {{{"scope", "all"},
                            {"order", "importance"},
                            {"draw", nullptr},
                            {"points", {{{"removed", 0}, {"head", nullptr}, {"loss", 2.5}}}}}}}});
  entry = head;
  entry["relations"] = json::object();
  entry["diagnostics"] = {
      {"positional", false}, {"offset", 0}, {"offsets", {{"0", 0.5}, {"other", 0.5}}}, {"entropy", 1.5}};
  json warning = head;
  warning.update(
      {{"warning", "dead"}, {"figure", "output_norm"}, {"value", 0}, {"threshold", 0.1}, {"message", "m"}});
  files["heads"].update(
      {{"heads", {entry}},
       {"warnings", {warning, warning}},
       {"similarity",
        {{{"kind", "encoder"}, {"layer", 0}, {"jensen_shannon", {{0}}}, {"cka", {{1}}}, {"cosine", {{1}}}}}},
       {"rollout", json::object()}});
  return files;
}

TEST(Report, RefusesFilesOfOtherCommands) {
  const Folder folder;
  folder.write("config.yaml", small_run);
  const auto message = [&](const std::string& file, const std::string& text) {
    const std::string path = folder.write(file, text), error = error_of([&] { report_data(folder.path, 1); });
    std::filesystem::remove(path);
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 0) << error;
    return error;
  };
  const auto files = head_files();
  for (const auto& [file, of] : files)
    for (const auto& [command, content] : files)
      EXPECT_EQ(message(file + ".json", content.dump()).empty(), file == command)
          << command << " as " << file;
  EXPECT_EQ(
      message("masking.json", "{}"),
      folder.path +
          "/masking.json: expected what polyhead heads mask RUN --json writes, but checkpoint is missing");
  EXPECT_THAT(message("heads.json", "{"), HasSubstr("but it is not JSON"));
  EXPECT_THAT(message("heads.json", "[1]"), HasSubstr("but it is a list, expected an object"));
  EXPECT_THAT(message("heads.json", R"({"a":)" + std::string(1000000, '[') + std::string(1000000, ']') + '}'),
              HasSubstr("but it is nested more than 20 deep"));
  const auto changed = [&](const std::string& file, const char* at, const json& value) {
    json content = files.at(file);
    content[json::json_pointer(at)] = value;
    return message(file + ".json", content.dump());
  };
  EXPECT_THAT(changed("heads", "/heads", 3), HasSubstr("but heads is 3, expected a list"));
  EXPECT_THAT(changed("heads", "/heads/0/layer", 1000000000),
              HasSubstr("but heads[0].layer is 1000000000, expected a whole number from 0 to 999"));
  EXPECT_THAT(changed("heads", "/similarity/0/cka/0/0", "x"),
              HasSubstr("but similarity[0].cka[0][0] is \"x\", expected a number"));
  EXPECT_THAT(changed("masking", "/sets/0/name", "encoder.0"),
              HasSubstr("expected heads such as encoder.0.3"));
  EXPECT_THAT(changed("masking", "/sets/0/figures/loss/q", "1"),
              HasSubstr("but sets[0].figures.loss.q is \"1\", expected a number"));
  EXPECT_THAT(changed("curve", "/metrics", json::array()),
              HasSubstr("but metrics is an empty list, expected one element at least"));
  EXPECT_EQ(changed("masking", "/sets/0/figures/loss/q", nullptr), "") << "of what is not finite";
}

TEST(Report, SaysWhichFilesAreOfAnotherCheckpoint) {
  const Folder folder;
  folder.write("config.yaml", small_run);
  auto files = head_files();
  files["masking"]["checkpoint"] = "moved/since/c.h5";
  files["curve"]["step"] = 6;
  for (const auto& [name, file] : files) folder.write(name + ".json", file.dump());
  EXPECT_EQ(data_of(folder)["warnings"], json({folder.path + "/curve.json is of c.h5 (update 6), " +
                                               folder.path + "/importance.json of c.h5 (update 7)"}));
}

TEST(Report, KeepsDataFromEndingItsScript) {
  const std::string data = "{\"a\":\"</script><!--\u2028\u2029\u2027é\"}";
  const std::string page = report_page(data);
  const std::string opening = "type=\"application/json\">";
  const auto begin = page.find(opening) + opening.size();
  const std::string embedded = page.substr(begin, page.find("</script>", begin) - begin);
  EXPECT_EQ(embedded, "{\"a\":\"\\u003c/script>\\u003c!--\\u2028\\u2029\u2027é\"}");
  EXPECT_EQ(json::parse(embedded), json::parse(data));
  EXPECT_THAT(page,
              AllOf(HasSubstr("d3js.org"), HasSubstr("default-src 'none'"), Not(HasSubstr("{{data}}"))));
}

TEST(Report, DrawsAnExperimentInABrowser) {
  if (!browser())
    GTEST_SKIP() << "no Chromium: tools/install-dependencies.sh installs it where Debian has it";
  const Folder folder;
  write_experiment(folder);
  const std::string data = report_data(folder.path, 1);
  const json outcome = in_browser(folder.write("report.html", report_page(data)), R"JS(
    const texts = (id, selector) => [...document.querySelectorAll(`#${id} ${selector}`)].map((node) => node.textContent);
    const choose = (id, name, label) => {
      const select = document.querySelector(`#${id} select[name=${name}]`);
      select.value = [...select.options].find((o) => o.textContent === label).value;
      select.dispatchEvent(new Event("change"));
    };
    const get = (list, id) => list.find((f) => f.id === id);
    const theme = document.getElementById("theme"), papers = ["light", "dark"].map((name) => {
      theme.value = name;
      theme.dispatchEvent(new Event("change"));
      return getComputedStyle(document.body).backgroundColor;
    });
    const result = {
      papers,
      title: document.querySelector("h1").textContent, figures: report.figures.map((f) => f.id), tables: report.tables.map((t) => t.id),
      seeds: texts("metric", ".seed title"), means: texts("metric", ".mean title"),
      cells: texts("phenomena", ".cell title"), metric: get(report.figures, "metric").table(),
      phenomena: get(report.tables, "phenomena-summary").csv(),
      failures: get(report.tables, "failures").csv(), latex: get(report.tables, "summary").latex(), svg: get(report.figures, "metric").svg(),
    };
    choose("metric", "phenomenon", "names");
    choose("phenomena", "show", "difference from the baseline");
    result.differences_table = get(report.figures, "phenomena").csv();
    return { ...result, names: texts("metric", ".seed title"), differences: texts("phenomena", ".cell title"), curves: texts("curves", "path.line title").length };
  )JS",
                                  folder.path);
  ASSERT_FALSE(outcome.contains("failure")) << outcome["failure"];
  EXPECT_THAT(outcome["errors"], IsEmpty()) << outcome["errors"];
  EXPECT_EQ(outcome["requests"], 0);
  const json& page = outcome["value"];
  EXPECT_EQ(page["title"], "few & <many> heads");
  EXPECT_EQ(page["papers"], json({"rgb(255, 255, 255)", "rgb(21, 24, 29)"}));
  EXPECT_EQ(page["figures"], json({"metric", "phenomena", "curves"}));
  EXPECT_EQ(page["tables"], json({"summary", "phenomena-summary", "costs", "failures"}));
  EXPECT_EQ(page["seeds"], json({"seed 5: 50", "seed 6: 55", "seed 5: 60", "seed 5: 70", "seed 6: 75"}));
  EXPECT_EQ(page["means"][1], "heads 2: 60, 1 seed, 1 diverged or failed");
  EXPECT_EQ(page["names"][0], "seed 5: 51");
  EXPECT_EQ(page["cells"],
            json({"agreement, heads 1: 53.50", "agreement, heads 2: 61", "agreement, heads 4: 73.50",
                  "names, heads 1: 53.50", "names, heads 2: 61", "names, heads 4: 73.50"}));
  EXPECT_EQ(page["differences"],
            json({"agreement, heads 1: -20, p = 0", "agreement, heads 2: none", "agreement, heads 4: 0",
                  "names, heads 1: -20, p = 0", "names, heads 2: none", "names, heads 4: 0"}));
  EXPECT_EQ(page["differences_table"],
            "phenomenon,heads 1,heads 1: p (Benjamini–Hochberg),heads 2,heads 2: p (Benjamini–Hochberg),"
            "heads 4,heads 4: p (Benjamini–Hochberg)\r\nagreement,-20,0,,,0,\r\nnames,-20,0,,,0,\r\n");
  EXPECT_THAT(page["phenomena"].get<std::string>(),
              AllOf(HasSubstr("heads,control,split,phenomenon,metric,mean,low,high,"),
                    HasSubstr(",p,p (Benjamini–Hochberg),margin,p (TOST)\r\n"),
                    HasSubstr("\r\n1,none,test,agreement,exact match,53.5,")));
  EXPECT_THAT(page["latex"].get<std::string>(), HasSubstr("p (Holm) & margin & p (TOST) "));
  EXPECT_EQ(json::parse(data)["experiment"]["points"][0]["difference"]["equivalence"]["margin"], 30);
  EXPECT_EQ(json::parse(data)["experiment"]["points"][0]["difference"]["equivalence"]["p"], 0);
  EXPECT_EQ(page["curves"], 6);
  const json rows = json::parse(data)["experiment"]["rows"];
  std::size_t row = 0;
  for (const json& known : rows)
    if (known["phenomenon"].is_null()) {
      EXPECT_EQ(page["metric"]["rows"][row++],
                json({known["grid"]["model.heads"], known["control"], known["split"], known["metric"], "",
                      known["seed"], known["value"]}));
    }
  EXPECT_EQ(row, page["metric"]["rows"].size());
  EXPECT_THAT(page["failures"].get<std::string>(), HasSubstr(",diverged,</script><b>loss</b>,"));
  EXPECT_THAT(page["latex"].get<std::string>(),
              AllOf(HasSubstr("\\begin{tabular}{rlllrrr"), HasSubstr("52.50 & "),
                    HasSubstr(" \\\\\n\\bottomrule\n\\end{tabular}\n")));
  EXPECT_THAT(page["svg"].get<std::string>(), AllOf(HasSubstr(" xmlns=\"http://www.w3.org/2000/svg\""),
                                                    HasSubstr("fill=\"rgb("), Not(HasSubstr("var("))));
}

TEST(Report, DrawsWhatIsKnownOfHeadsInABrowser) {
  if (!browser())
    GTEST_SKIP() << "no Chromium: tools/install-dependencies.sh installs it where Debian has it";
  const Folder folder;
  folder.write("config.yaml", small_run);
  for (const auto& [name, file] : head_files()) folder.write(name + ".json", file.dump());
  const json outcome = in_browser(folder.write("report.html", report_page(report_data(folder.path, 1))), R"JS(
    const select = document.querySelector("#heads select");
    const role = [...select.options].findIndex((option) => option.textContent === "role");
    select.value = String(role);
    select.dispatchEvent(new Event("change"));
    const link = document.querySelector("main .warning a");
    return { warnings: link.textContent, table: document.querySelector(link.getAttribute("href")).querySelector("h3").textContent,
      key: document.querySelector("#heads .key").textContent, words: document.querySelector("#heads figcaption").textContent,
      figures: report.figures.map((f) => f.id) };
  )JS",
                                  folder.path);
  ASSERT_FALSE(outcome.contains("failure")) << outcome["failure"];
  EXPECT_THAT(outcome["errors"], IsEmpty()) << outcome["errors"];
  const json& page = outcome["value"];
  EXPECT_EQ(page["warnings"], "2 warnings about heads");
  EXPECT_EQ(page["table"], "Warnings about heads");
  EXPECT_EQ(page["key"], "A: none of these");
  EXPECT_THAT(page["words"].get<std::string>(), HasSubstr("Here no head has a role."));
  EXPECT_EQ(page["figures"], json({"heads", "pruning", "similarity", "offsets"}));
}

/// Numbers in maps and on axes are written alike, and what does not fit leaves no gaps.
TEST(Report, WritesNumbersOneWayInABrowser) {
  if (!browser())
    GTEST_SKIP() << "no Chromium: tools/install-dependencies.sh installs it where Debian has it";
  const Folder folder;
  write_experiment(folder);
  const json outcome = in_browser(folder.write("report.html", report_page(report_data(folder.path, 1))), R"JS(
    const inCells = (values, cellWidth) => {
      const text = cellText(values, colorScale("sequential", values), cellWidth, 26);
      return values.map((value) => text(value));
    };
    const scroll = document.querySelector("#summary .scroll");
    return { wide: inCells([61, 53.5, 100], 80), narrow: inCells([61, 53.5, 100], 26), none: inCells([61, 53.5, 100], 12), small: inCells([0.5, 0.125], 80),
      settings: [1e12, 0.0005, 0.25, 8, 20000, [1, 2], "a"].map(valueText), table: [1e12, 0.0005, 0.25, 8, 20000].map(shown),
      inside: scroll.getBoundingClientRect().right <= document.documentElement.clientWidth && document.documentElement.scrollWidth <= document.documentElement.clientWidth };
  )JS",
                                  folder.path);
  ASSERT_FALSE(outcome.contains("failure")) << outcome["failure"];
  EXPECT_THAT(outcome["errors"], IsEmpty()) << outcome["errors"];
  const json& page = outcome["value"];
  EXPECT_EQ(page["wide"], json({"61.0", "53.5", "100.0"}));
  EXPECT_EQ(page["narrow"], json({"61", "54", "100"}));
  EXPECT_EQ(page["none"], json({"", "", ""}));
  EXPECT_EQ(page["small"], json({"0.500", "0.125"}));
  EXPECT_EQ(page["settings"], json({"1e+12", "5e-4", "0.25", "8", "20,000", "[1,2]", "a"}));
  EXPECT_EQ(page["table"], json({"1e+12", "5e-4", "0.25", "8", "20,000"}));
  EXPECT_EQ(page["inside"], true);
}

}  // namespace
}  // namespace polyhead::testing
