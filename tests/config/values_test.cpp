#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings.h"

using settings::message;
using settings::Norm;
using settings::parse;
using ::testing::ElementsAre;

TEST(Values, EveryTypeIsRead) {
  const settings::Run run = parse(R"(# a comment
name: "a: b # c"
seed: 18446744073709551615
model:
  d_model: +120
  heads: [6, 0, 3]
  head_dim: 20
  norm: pre
  dropout: 1e-1
  bias: false
training:
  max_steps: -5
  adam: {betas: [.5, 0.25], eps: 1.0e-05}
  metrics:
    - loss
    - 'true'
  flags: [true, false]
)");
  EXPECT_EQ(run.name, "a: b # c");
  EXPECT_EQ(run.seed, 18446744073709551615u);
  EXPECT_EQ(run.model.d_model, 120);
  EXPECT_THAT(run.model.heads.counts, ElementsAre(6, 0, 3));
  EXPECT_EQ(run.model.head_dim, 20);
  EXPECT_EQ(run.model.norm, Norm::pre);
  EXPECT_EQ(run.model.dropout, 0.1);
  EXPECT_FALSE(run.model.bias);
  EXPECT_EQ(run.training.max_steps, -5);
  EXPECT_THAT(run.training.adam.betas, ElementsAre(0.5, 0.25));
  EXPECT_EQ(run.training.adam.eps, 1e-5);
  EXPECT_THAT(run.training.metrics, ElementsAre("loss", "true"));
  EXPECT_THAT(run.training.flags, ElementsAre(true, false));
}

TEST(Values, AbsentKeysKeepTheirDefaults) {
  EXPECT_EQ(parse("{}"), settings::Run{});
  EXPECT_EQ(parse("model: {d_model: 64}").model.heads, settings::Heads{});
}

TEST(Values, OptionalTakesNull) {
  for (const char* text : {"model: {head_dim: null}", "model: {head_dim: ~}", "model:\n  head_dim:\n"})
    EXPECT_EQ(parse(text).model.head_dim, std::nullopt) << text;
}

TEST(Values, LargeDoublesMayBeWrittenAsIntegersOrExponents) {
  EXPECT_EQ(parse("training: {adam: {eps: 1e5}}").training.adam.eps, 100000.0);
  EXPECT_EQ(parse("training: {adam: {eps: 7}}").training.adam.eps, 7.0);
  EXPECT_EQ(parse("training: {adam: {eps: 123456789012345678901234567890}}").training.adam.eps,
            123456789012345678901234567890.0);
}

TEST(Values, WrongTypesSayWhatWasGivenAndExpected) {
  const auto d_model = [](const std::string& value) { return message("model:\n  d_model: " + value); };
  const std::string at = "run.yaml:2: model.d_model: ";
  EXPECT_EQ(d_model("many"), at + "\"many\", expected an integer");
  EXPECT_EQ(d_model("\"6\""), at + "the text \"6\", expected an integer");
  EXPECT_EQ(d_model("1.5"), at + "1.5, expected an integer");
  EXPECT_EQ(d_model("[1]"), at + "a list, expected an integer");
  EXPECT_EQ(d_model("{a: 1}"), at + "a mapping, expected an integer");
  EXPECT_EQ(d_model(""), at + "nothing, expected an integer");
  EXPECT_EQ(d_model("null"), at + "nothing, expected an integer");
  EXPECT_EQ(d_model("true"), at + "true, expected an integer");
  EXPECT_EQ(d_model("3000000000"), at + "3000000000, expected an integer between -2147483648 and 2147483647");
  EXPECT_EQ(d_model("+-3"), at + "\"+-3\", expected an integer");
  EXPECT_EQ(d_model("\"a\\nb\""), at + "\"a\\nb\", expected an integer");
  EXPECT_EQ(d_model(std::string(200, 'x')), at + '"' + std::string(60, 'x') + "...\", expected an integer");
  EXPECT_EQ(message("seed: -1"),
            "run.yaml:1: seed: -1, expected an integer between 0 and 18446744073709551615");
  EXPECT_EQ(message("name: [a]"), "run.yaml:1: name: a list, expected text");
  EXPECT_EQ(message("name:"), "run.yaml:1: name: nothing, expected text");
  EXPECT_EQ(message("model: 3"), "run.yaml:1: model: 3, expected a mapping");
  EXPECT_EQ(message("model:"), "run.yaml:1: model: nothing, expected a mapping");
  EXPECT_EQ(message("model: {norm: middle}"),
            "run.yaml:1: model.norm: \"middle\", expected one of pre, post, no");
  EXPECT_EQ(message("training: {metrics: loss}"),
            "run.yaml:1: training.metrics: \"loss\", expected a list, each text");
  EXPECT_EQ(message("model: {heads: {a: 1}}"),
            "run.yaml:1: model.heads: a mapping, expected an integer or a list of them");
}

TEST(Values, EntriesOfListsAreNamedByIndexAndLine) {
  EXPECT_EQ(message("training:\n  adam:\n    betas:\n      - 0.9\n      - high\n"),
            "run.yaml:5: training.adam.betas[1]: \"high\", expected a number");
}

TEST(Values, IntegersAreDecimal) {
  const auto d_model = [](const std::string& value) { return message("model: {d_model: " + value + "}"); };
  const std::string at = "run.yaml:1: model.d_model: ";
  EXPECT_EQ(d_model("010"), at + "010, expected a decimal integer: write 10");
  EXPECT_EQ(d_model("-007"), at + "-007, expected a decimal integer: write -7");
  EXPECT_EQ(d_model("00"), at + "00, expected a decimal integer: write 0");
  EXPECT_EQ(d_model("0x10"), at + "0x10, expected a decimal integer: write 16");
  EXPECT_EQ(d_model("0o17"), at + "0o17, expected a decimal integer: write 15");
  EXPECT_EQ(d_model("0b11"), at + "0b11, expected a decimal integer: write 3");
  EXPECT_EQ(d_model("1e5"), at + "1e5, expected an integer: write 100000");
  EXPECT_EQ(d_model("64.0"), at + "64.0, expected an integer: write 64");
  EXPECT_EQ(d_model("1e-5"), at + "1e-5, expected an integer");
  EXPECT_EQ(d_model("1_000"), at + "1_000, expected an integer");
}

TEST(Values, DoublesAreFiniteDecimals) {
  const auto dropout = [](const std::string& value) { return message("model: {dropout: " + value + "}"); };
  const std::string at = "run.yaml:1: model.dropout: ";
  for (const std::string word : {".nan", "nan", ".inf", "inf", "-.INF", "+Infinity"})
    EXPECT_EQ(dropout(word), at + '"' + word + "\", expected a finite number");
  EXPECT_EQ(dropout("1e999"), at + "1e999, expected a number that a double can hold");
  EXPECT_EQ(dropout("0x1"), at + "0x1, expected a decimal number: write 1");
  EXPECT_EQ(dropout("0.1.2"), at + "0.1.2, expected a number");
  EXPECT_EQ(dropout("'0.1'"), at + "the text \"0.1\", expected a number");
  EXPECT_EQ(dropout("e5"), at + "\"e5\", expected a number");
}

TEST(Values, BooleansAreTrueOrFalse) {
  for (const std::string word : {"yes", "no", "on", "off", "True", "FALSE", "y"})
    EXPECT_EQ(message("model: {bias: " + word + "}"),
              "run.yaml:1: model.bias: \"" + word + "\", expected true or false");
  EXPECT_EQ(message("model: {bias: 1}"), "run.yaml:1: model.bias: 1, expected true or false");
  EXPECT_EQ(message("model: {bias: 'true'}"),
            "run.yaml:1: model.bias: the text \"true\", expected true or false");
}

TEST(Values, ConstraintsHold) {
  EXPECT_EQ(message("model: {d_model: 0}"), "run.yaml:1: model.d_model: 0, expected at least 1");
  EXPECT_EQ(message("model: {dropout: 1}"), "run.yaml:1: model.dropout: 1, expected at least 0 and below 1");
  EXPECT_EQ(message("model: {head_dim: 1025}"),
            "run.yaml:1: model.head_dim: 1025, expected between 1 and 1024");
  EXPECT_EQ(message("model: {heads: [4, -1]}"), "run.yaml:1: model.heads: [4, -1], expected at least 0");
  EXPECT_EQ(message("training: {max_steps: 1000001}"),
            "run.yaml:1: training.max_steps: 1000001, expected at most 1000000");
  EXPECT_EQ(message("training: {adam: {eps: 0}}"), "run.yaml:1: training.adam.eps: 0, expected above 0");
  EXPECT_EQ(message("training: {adam: {betas: [0.5, 1]}}"),
            "run.yaml:1: training.adam.betas: [0.5, 1], expected above 0 and below 1");
  EXPECT_EQ(message("training: {metrics: []}"), "run.yaml:1: training.metrics: [], expected not empty");
  EXPECT_EQ(message("name: ''"), "run.yaml:1: name: \"\", expected not empty");
  EXPECT_EQ(message("model: {dropout: 0, head_dim: 1}"), "");
}

namespace {
struct Source {
  std::string path;
  template <class Visitor>
  void fields(Visitor& v) {
    v("path", path, "a file", polyhead::config::not_empty());
  }
};
struct Data {
  Source source;
  template <class Visitor>
  void fields(Visitor& v) {
    v("source", source, "sentences");
  }
};
}  // namespace

TEST(Values, ConstraintsHoldForDefaultsToo) {
  const auto fails = [](const char* text) {
    try {
      polyhead::config::parse<Data>(text, "d.yaml");
    } catch (const polyhead::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fails("{}"), "d.yaml: source.path: \"\", expected not empty");
  EXPECT_EQ(fails("\nsource: {}"), "d.yaml:2: source.path: \"\", expected not empty");
}

TEST(Values, RulesAcrossFieldsNameTheLineOfTheirKey) {
  EXPECT_EQ(message("model:\n  d_model: 128\n  heads: 6\n"),
            "run.yaml:3: model.heads: 6 does not divide d_model 128");
  EXPECT_EQ(message("\nmodel:\n  d_model: 126\n"), "run.yaml:2: model.heads: 4 does not divide d_model 126");
  EXPECT_EQ(message("name: root rule\nmodel:\n  d_model: 8\n"),
            "run.yaml:3: model.d_model: not with this name");
}

TEST(Values, RulesAcrossFieldsWaitForEveryFieldToBeFine) {
  EXPECT_EQ(message("model:\n  d_model: x\n  heads: 6\n"),
            "run.yaml:2: model.d_model: \"x\", expected an integer");
}
