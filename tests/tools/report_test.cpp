#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/browser.h"
#include "tools/program.h"

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A copy of the trained run's folder, to write reports into.
std::string copied_run() {
  const std::string folder = fresh_path("reported");
  fs::copy(trained_run(), folder, fs::copy_options::recursive);
  return folder;
}

std::vector<int> bytes_of(const std::string& base64) {
  std::vector<int> bytes;
  int bits = 0, count = 0;
  for (const char c : base64) {
    const auto digit =
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    if (digit == std::string_view::npos) break;
    bits = (bits << 6 | static_cast<int>(digit)) & 0xffffff;
    if ((count += 6) >= 8) bytes.push_back(bits >> (count -= 8) & 255);
  }
  return bytes;
}

TEST(Report, HoldsTheAttentionOfARun) {
  const std::string folder = copied_run();
  const Outcome outcome = run({"report", folder, "--threads", "2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "polyhead: wrote " + folder + "/report.html\n");
  EXPECT_THAT(outcome.out, IsEmpty());
  const json data = json::parse(read_text(folder + "/report.json"));
  EXPECT_EQ(data["name"], "tiny");
  EXPECT_EQ(data["curves"][0]["updates"]["step"].size(), 40U);
  EXPECT_EQ(data["curves"][0]["validations"]["step"], json({10, 20, 30, 40}));
  const json& attention = data["attention"];
  EXPECT_EQ(attention["split"], "test");
  EXPECT_EQ(attention["kinds"], json::parse(R"([{"kind":"encoder","heads":[2]},{"kind":"decoder","heads":[2]},
                                                {"kind":"cross","heads":[2]}])"));
  ASSERT_EQ(attention["sentences"].size(), 24U);
  const json& sentence = attention["sentences"][0];
  const std::size_t source = sentence["source"].size(), target = sentence["input"].size();
  EXPECT_EQ(sentence["source"].back(), "</s>");
  EXPECT_EQ(sentence["input"].front(), "<s>");
  EXPECT_EQ(sentence["output"].size(), target);
  // Copying aligns token i with token i, and position i predicts token i.
  for (std::size_t i = 0; i + 1 < target; ++i) {
    EXPECT_EQ(sentence["gold"]["predicted_alignment"][i], json({i, i, ""}));
    EXPECT_EQ(sentence["gold"]["input_alignment"][i], json({i + 1, i, ""}));
  }
  const std::vector<int> weights = bytes_of(sentence["weights"]);
  ASSERT_EQ(weights.size(), 2 * (source * source + target * target + target * source));
  std::size_t at = 0;
  for (const auto& [queries, keys] : {std::pair{source, source},
                                      {source, source},
                                      {target, target},
                                      {target, target},
                                      {target, source},
                                      {target, source}})
    for (std::size_t query = 0; query < queries; ++query) {
      int sum = 0;
      for (std::size_t key = 0; key < keys; ++key) sum += weights[at++];
      EXPECT_NEAR(sum, 255, 0.5 * static_cast<double>(keys));
    }
  // A decoder's first position sees itself alone.
  EXPECT_EQ(weights[2 * source * source], 255);
}

TEST(Report, IsDrawnInABrowser) {
  if (!browser())
    GTEST_SKIP() << "no Chromium: tools/install-dependencies.sh installs it where Debian has it";
  const std::string folder = copied_run();
  const Outcome heads = run({"heads", folder, "--json"});
  ASSERT_EQ(heads.status, 0) << heads.err;
  std::ofstream(folder + "/heads.json") << heads.out;
  const std::string page = folder + "/page.html";
  ASSERT_EQ(run({"report", folder, "--out", page}).status, 0);
  const json outcome = in_browser(page, R"JS(
    const get = (id) => report.figures.find((f) => f.id === id);
    const viewer = get("attention"), control = (name) => document.querySelector(`#attention [name=${name}]`);
    const change = (input, value, type = "change") => { input.value = value; input.dispatchEvent(new Event(type)); };
    const count = (selector) => document.querySelectorAll("#attention " + selector).length;
    change(control("kind"), "2");
    change(control("threshold"), "0", "input");
    const cross = viewer.table(), lines = count(".link.weight"), gold = count(".link.gold");
    control("heads").click();
    const oneHead = count(".link.weight");
    const token = document.querySelector("#attention .token[data-side=query]");
    token.focus();
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    press("ArrowDown");
    const moved = document.activeElement.dataset.index;
    press("Enter");
    press("ArrowRight");
    const side = document.activeElement.dataset.side;
    document.activeElement.blur();
    const visible = [...document.querySelectorAll("#attention .link.weight")].filter((node) => node.style.display !== "none").length;
    change(control("view"), "1");
    return { figures: report.figures.map((f) => f.id), cross, lines, gold, oneHead, moved, side, visible, cells: count("rect.weight"), outlined: count("rect.gold"),
      csv: viewer.csv().split("\r\n")[0], svg: report.figures.every((f) => f.svg().includes("<svg")), names: document.querySelectorAll("svg[aria-label]").length };
  )JS",
                                  folder);
  ASSERT_FALSE(outcome.contains("failure")) << outcome["failure"];
  EXPECT_THAT(outcome["errors"], IsEmpty()) << outcome["errors"];
  EXPECT_EQ(outcome["requests"], 0);
  const json& drawn = outcome["value"];
  EXPECT_THAT(drawn["figures"], ::testing::Contains("curves"));
  EXPECT_THAT(drawn["figures"], ::testing::Contains("heads"));
  const json sentence = json::parse(read_text(folder + "/page.json"))["attention"]["sentences"][0];
  const std::vector<int> weights = bytes_of(sentence["weights"]);
  const std::size_t source = sentence["source"].size(), target = sentence["input"].size();
  const std::size_t first = 2 * (source * source + target * target);  // of cross-attention
  for (const json& row : drawn["cross"]["rows"]) {
    const std::size_t head = row[0], query = row[1], key = row[3];
    EXPECT_EQ(row[4], sentence["source"][key]);
    EXPECT_NEAR(row[5], weights[first + (head * target + query) * source + key] / 255.0, 5.1e-4);
    EXPECT_EQ(row[6], query == key && key + 1 < source ? "gold" : "");
  }
  const auto shown = [&](std::size_t from, std::size_t count) {
    return std::count_if(&weights[from], &weights[from] + count, [](int weight) { return weight > 0; });
  };
  EXPECT_EQ(drawn["lines"], shown(first, 2 * target * source));
  EXPECT_EQ(drawn["oneHead"], shown(first + target * source, target * source));
  EXPECT_EQ(drawn["cross"]["rows"].size(), drawn["lines"]);
  EXPECT_EQ(drawn["gold"], target - 1);
  EXPECT_EQ(drawn["moved"], "1");
  EXPECT_EQ(drawn["side"], "key");
  EXPECT_EQ(drawn["visible"],
            shown(first + target * source + source, source));  // of the token that Enter kept
  EXPECT_EQ(drawn["cells"], drawn["oneHead"]);
  EXPECT_EQ(drawn["outlined"], target - 1);
  EXPECT_EQ(drawn["csv"], "head,query,query token,key,key token,weight,annotation");
  EXPECT_EQ(drawn["svg"], true);
  EXPECT_EQ(drawn["names"], drawn["figures"].size());
}

TEST(Report, WarnsOfFilesOfAnotherUpdate) {
  const std::string folder = copied_run(), before = folder + "/checkpoints/step-00000030.h5";
  json importance = json::parse(run({"heads", "importance", folder, "--json"}).out);
  std::ofstream(folder + "/importance.json") << importance;
  EXPECT_EQ(run({"report", folder}).err, "polyhead: wrote " + folder + "/report.html\n");
  importance["checkpoint"] = before;
  importance["step"] = 30;
  std::ofstream(folder + "/importance.json") << importance;
  const Outcome outcome = run({"report", folder});
  EXPECT_EQ(outcome.status, 0);
  const std::string warning = folder + "/importance.json is of " + before + " (update 30), the page of " +
                              folder + "/checkpoints/step-00000040.h5 (update 40)";
  EXPECT_EQ(outcome.err, "polyhead: " + warning + "\npolyhead: wrote " + folder + "/report.html\n");
  EXPECT_EQ(json::parse(read_text(folder + "/report.json"))["warnings"], json({warning}));
  std::ofstream(folder + "/importance.json") << "{}";
  EXPECT_EQ(run({"report", folder}).status, 4);
}

TEST(Report, IsMadeOfACheckpoint) {
  const std::string folder = copied_run(), checkpoint = folder + "/checkpoints/step-00000040.h5";
  ASSERT_EQ(run({"report", checkpoint}).status, 0);
  const json data = json::parse(read_text(folder + "/checkpoints/step-00000040.report.json"));
  EXPECT_EQ(data["attention"]["step"], 40);
  EXPECT_THAT(data["curves"], IsEmpty());
  EXPECT_THAT(read_text(folder + "/checkpoints/step-00000040.report.html"), StartsWith("<!doctype html>"));
}

TEST(Report, RefusesWrongUse) {
  const auto failure = [](const Arguments& arguments, int status, const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  failure({"report"}, 2, "DIR is required; see polyhead report --help");
  failure({"report", trained_run(), "--out", "x.pdf"}, 2, "--out x.pdf: expected a name that ends in .html");
  failure({"report", fresh_path("nowhere")}, 4, "nowhere: no such file or folder");
  failure({"report", scratch_folder()}, 4, "neither an experiment");
  failure({"report", tiny_config()}, 4, "tiny.yaml");
  failure({"report", trained_run(), "--out", fresh_path("no") + "/x.html"}, 4, "x.json");
}

}  // namespace
}  // namespace polyhead::testing
