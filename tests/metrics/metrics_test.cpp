#include "polyhead/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "polyhead/core/error.h"
#include "polyhead/metrics/bleu.h"
#include "polyhead/metrics/tokenizer.h"

namespace polyhead::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Lines = std::vector<std::string>;

/// The status and message of the Error that `call` throws.
template <class Call>
std::pair<Status, std::string> error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.status(), error.what()};
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(MetricTable, NamesEveryMetric) {
  EXPECT_THAT(metric_names(), ElementsAre("bleu", "chrf", "ter", "exact_match", "token_accuracy"));
  EXPECT_THAT(tokenizer_names(), ElementsAre("13a", "none", "char"));
  EXPECT_THAT(smoothing_names(), ElementsAre("exp", "floor", "add-k", "none"));
  EXPECT_FALSE(find_metric("ter").higher_is_better);
  EXPECT_TRUE(find_metric("bleu").higher_is_better);
}

TEST(MetricTable, RefusesUnknownNamesAndValues) {
  const Lines line{"a"};
  const auto error = [&](const std::string& metric, const Options& options) {
    const auto [status, message] = error_of([&] { corpus(metric, line, {line}, options); });
    EXPECT_EQ(status, Status::usage);
    return message;
  };
  EXPECT_EQ(error("blue", {}),
            "unknown metric 'blue', expected one of: bleu, chrf, ter, exact_match, token_accuracy");
  EXPECT_EQ(error("bleu", {.tokenize = "zh"}),
            "unknown metric tokenizer 'zh', expected one of: 13a, none, char");
  EXPECT_EQ(error("bleu", {.smooth = "add-n"}),
            "unknown BLEU smoothing 'add-n', expected one of: exp, floor, add-k, none");
  EXPECT_EQ(error("bleu", {.smooth_value = 0.5}), "BLEU smoothing exp takes no value, but 0.5 was given");
  EXPECT_EQ(error("bleu", {.smooth = "floor", .smooth_value = -1.0}),
            "BLEU smoothing value -1 is not a number of at least 0");
  EXPECT_EQ(error("bleu", {.smooth = "add-k", .smooth_value = std::nan("")}),
            "BLEU smoothing value nan is not a number of at least 0");
  EXPECT_EQ(error("chrf", {.word_order = -1}), "chrF word order -1 is not in 0 to 6");
}

TEST(MetricTable, RefusesTextsThatDoNotFitTogether) {
  for (const std::string& metric : metric_names()) {
    const auto error = [&](const Lines& hypotheses, const std::vector<Lines>& references) {
      return error_of([&] { corpus(metric, hypotheses, references); });
    };
    EXPECT_EQ(
        error({"a", "b"}, {{"a", "b"}, {"a"}}),
        std::pair(Status::data, std::string("metrics: reference 2 has 1 lines, but the hypothesis has 2")));
    EXPECT_EQ(error({"a"}, {}), std::pair(Status::usage, std::string("metrics: no reference was given, "
                                                                     "expected at least one")));
    EXPECT_EQ(
        error({}, {{}}),
        std::pair(Status::data, std::string("metrics: the hypothesis and its references have no lines")));
    EXPECT_EQ(error({"a", "\xFF"}, {{"a", "b"}}),
              std::pair(Status::data, std::string("metrics: hypothesis line 2 is not valid UTF-8")));
    EXPECT_EQ(error({"a"}, {{"\xC3"}}),
              std::pair(Status::data, std::string("metrics: reference 1 line 1 is not valid UTF-8")));
  }
}

TEST(MetricTable, ScoresIdenticalTextsPerfectly) {
  const Lines lines{"one", "", "日本語 の text, with 3.14 of it!", "a b c d e"};
  for (const std::string& metric : metric_names())
    EXPECT_NEAR(corpus(metric, lines, {lines}).score, metric == "ter" ? 0 : 100, 1e-12) << metric;
}

TEST(MetricTable, ScoresEmptyLines) {
  const Lines empty{"", ""}, words{"a b c d", "e f"};
  for (const std::string& metric : metric_names()) {
    EXPECT_EQ(corpus(metric, empty, {words}).score, metric == "ter" ? 100 : 0) << metric;
    EXPECT_EQ(corpus(metric, words, {empty}).score, metric == "ter" ? 100 : 0) << metric;
  }
  EXPECT_EQ(corpus("bleu", empty, {empty}).score, 0);
  EXPECT_EQ(corpus("chrf", empty, {empty}).score, 0);
  EXPECT_EQ(corpus("ter", empty, {empty}).score, 0);
  EXPECT_EQ(corpus("exact_match", empty, {empty}).score, 100);
  EXPECT_EQ(corpus("token_accuracy", empty, {empty}).score, 100);
}

TEST(Tokenizer13a, IsolatesSymbolsAndPunctuation) {
  EXPECT_THAT(tokenize_13a("Hello, world!"), ElementsAre("Hello", ",", "world", "!"));
  EXPECT_THAT(tokenize_13a("1,000.5 and 5. end."), ElementsAre("1,000.5", "and", "5", ".", "end", "."));
  EXPECT_THAT(tokenize_13a(".5 a..b"), ElementsAre(".", "5", "a", ".", ".", "b"));
  EXPECT_THAT(tokenize_13a("2019-20 e-mail it's"), ElementsAre("2019", "-", "20", "e-mail", "it's"));
  EXPECT_THAT(tokenize_13a("(a/b) x=1 50%"), ElementsAre("(", "a", "/", "b", ")", "x", "=", "1", "50", "%"));
  EXPECT_THAT(tokenize_13a("«é».日,"), ElementsAre("«é»", ".", "日", ","));
}

TEST(Tokenizer13a, ResolvesEntitiesOnce) {
  EXPECT_THAT(tokenize_13a("&quot;a&quot; &lt;b&gt;"), ElementsAre("\"", "a", "\"", "<", "b", ">"));
  EXPECT_THAT(tokenize_13a("&amp;lt;"), ElementsAre("<"));
  EXPECT_THAT(tokenize_13a("&lt;amp;"), ElementsAre("<", "amp", ";"));
  EXPECT_THAT(tokenize_13a("a<skipped>b"), ElementsAre("ab"));
  EXPECT_THAT(tokenize_13a("some-\nthing\nelse"), ElementsAre("something", "else"));
  EXPECT_THAT(tokenize_13a("  "), IsEmpty());
}

TEST(Tokenizers, SplitAtWhiteSpaceAndIntoCharacters) {
  EXPECT_THAT(tokenize_none(" a,\u00A0b\tc. "), ElementsAre("a,", "b", "c."));
  EXPECT_THAT(tokenize_char("ab ü日\u3000👩"), ElementsAre("a", "b", "ü", "日", "👩"));
}

TEST(Bleu, TakesTheClosestReferenceLengthAndTheShorterOfTwo) {
  const Score score = corpus("bleu", {"a b c d"}, {{"a b c d e f"}, {"a b"}, {"a b c d e f g"}});
  EXPECT_EQ(score.details.back(), std::pair(std::string("reference_length"), 2.0));
  EXPECT_NEAR(score.score, 100, 1e-12);
}

TEST(Bleu, ClipsCountsByTheBestReference) {
  const Score score = corpus("bleu", {"the the the the"}, {{"the cat"}, {"the the dog"}}, {.smooth = "none"});
  EXPECT_EQ(score.details[0].second, 50);
  EXPECT_EQ(score.details[1].second, 100.0 / 3);
  EXPECT_EQ(score.score, 0);
}

TEST(Bleu, SmoothsOrdersWithoutAMatch) {
  const Lines hypothesis{"a b x c d"}, reference{"a b y c d"};
  const auto precisions = [&](const Options& options) {
    const Score score = corpus("bleu", hypothesis, {reference}, options);
    return std::vector{score.details[0].second, score.details[1].second, score.details[2].second,
                       score.details[3].second};
  };
  EXPECT_THAT(precisions({}), ElementsAre(80, 50, 100.0 / 6, 100.0 / 8));
  EXPECT_THAT(precisions({.smooth = "floor"}), ElementsAre(80, 50, 10.0 / 3, 5));
  EXPECT_THAT(precisions({.smooth = "add-k"}), ElementsAre(80, 60, 25, 100.0 / 3));
  EXPECT_THAT(precisions({.smooth = "none"}), ElementsAre(80, 50, 0, 0));
}

TEST(Bleu, LeavesOutMissingOrdersOfASentenceOnly) {
  EXPECT_NEAR(sentence("bleu", "one", {"one"}).score, 100, 1e-12);
  EXPECT_EQ(corpus("bleu", {"one"}, {{"one"}}).score, 0);
  EXPECT_THAT(sentence("bleu", "one", {"one"}).signature, ::testing::HasSubstr("|eff:yes|"));
}

TEST(Bleu, SignatureTellsEveryOption) {
  EXPECT_EQ(corpus("bleu", {"a"}, {{"a"}, {"b"}},
                   {.tokenize = "char", .smooth = "floor", .smooth_value = 0.125, .lowercase = true})
                .signature,
            "nrefs:2|case:lc|eff:no|tok:char|smooth:floor[0.12]|version:polyhead-0.1.0");
}

TEST(Chrf, WeighsRecallTwice) {
  // One order only: P = 1, R = 1/2.
  EXPECT_NEAR(corpus("chrf", {"a"}, {{"ab"}}).score, 100 * 5 * 0.5 / 4.5, 1e-12);
}

TEST(Chrf, CutsPunctuationOffWords) {
  // Characters agree in full; of the words, "(hi" and "hi" differ but ")" agrees.
  const Score spaced = corpus("chrf", {"( hi )"}, {{"(hi)"}}, {.word_order = 1});
  EXPECT_NEAR(spaced.details[0].second, 100 * (4 + 1.0 / 3) / 5, 1e-12);
  EXPECT_NEAR(spaced.details[1].second, 100 * (4 + 1.0 / 2) / 5, 1e-12);
}

TEST(Chrf, TakesTheBestReferenceOfEachLine) {
  EXPECT_NEAR(corpus("chrf", {"abc", "xyz"}, {{"abc", "nothing"}, {"nothing", "xyz"}}).score, 100, 1e-12);
}

TEST(Chrf, LowersCaseWhenAsked) {
  EXPECT_EQ(corpus("chrf", {"ÄB"}, {{"äb"}}, {.lowercase = true}).score, 100);
  EXPECT_LT(corpus("chrf", {"ÄB"}, {{"äb"}}).score, 50);
}

double edits(const std::string& hypothesis, const std::string& reference) {
  return corpus("ter", {hypothesis}, {{reference}}).details[0].second;
}

TEST(Ter, CountsEachEditOnce) {
  EXPECT_EQ(edits("a b c", "a b c"), 0);
  EXPECT_EQ(edits("a x c", "a b c"), 1);
  EXPECT_EQ(edits("a c", "a b c"), 1);
  EXPECT_EQ(edits("a b c d", "a b c"), 1);
  EXPECT_EQ(edits("A B", "a b"), 0);
  EXPECT_EQ(corpus("ter", {"A B"}, {{"a b"}}, {.case_sensitive = true}).score, 100);
}

TEST(Ter, MovesARunOfWordsInOneEdit) {
  EXPECT_EQ(edits("d e f a b c", "a b c d e f"), 1);
  EXPECT_EQ(edits("b a", "a b"), 1);
  EXPECT_EQ(edits("x a b c", "a b c x y"), 2);
}

TEST(Ter, TakesTheFewestEditsAndTheMeanLength) {
  const Score score = corpus("ter", {"a b"}, {{"a b"}, {"c d e f g"}});
  EXPECT_EQ(score.score, 0);
  EXPECT_EQ(score.details[1].second, 3.5);
}

TEST(Ter, ComparesLinesOfVeryDifferentLength) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += concat("w", i, " ");
  EXPECT_EQ(edits("w399", text), 399);
  EXPECT_EQ(edits(text, "w399"), 399);
  // 397 without the beam, which is too narrow here to reach all three words.
  EXPECT_EQ(edits("w0 w200 w399", text), 399);
  EXPECT_EQ(edits("", text), 400);
  EXPECT_EQ(edits(text, ""), 400);
}

TEST(ExactMatch, IgnoresOuterWhiteSpaceOnly) {
  const Score score = corpus("exact_match", {" a b\u3000", "a  b", "A b", "c"}, {{"a b", "a b", "a b", "d"}});
  EXPECT_EQ(score.score, 25);
  EXPECT_EQ(score.signature, "nrefs:1|case:mixed|version:polyhead-0.1.0");
  EXPECT_EQ(corpus("exact_match", {"A b"}, {{"a b"}}, {.lowercase = true}).score, 100);
  EXPECT_EQ(corpus("exact_match", {"a", "b"}, {{"a", "x"}, {"y", "b"}}).score, 100);
}

TEST(TokenAccuracy, ComparesPositionByPosition) {
  const Score score = corpus("token_accuracy", {"a b c", "x"}, {{"a x c d", "x"}});
  EXPECT_EQ(score.score, 60);
  EXPECT_THAT(score.details,
              ElementsAre(std::pair(std::string("matches"), 3.0), std::pair(std::string("positions"), 5.0)));
  EXPECT_EQ(corpus("token_accuracy", {"b c"}, {{"a b c"}}).score, 0);
  EXPECT_EQ(corpus("token_accuracy", {"a b"}, {{"a c d"}, {"a b"}}).score, 100);
}

}  // namespace
}  // namespace polyhead::metrics
