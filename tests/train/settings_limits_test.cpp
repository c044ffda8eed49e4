#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "polyhead/config/yaml.h"
#include "polyhead/core/memory.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/train/config.h"
#include "support/check_op.h"
#include "support/message.h"

/// Every setting there is, given what it cannot be.
namespace polyhead::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Texts = std::vector<std::string>;

struct Setting {
  std::string key, type;
  bool is_section;
};

void list_settings(const config::Field& section, const std::string& path, std::vector<Setting>& settings) {
  for (const config::Field& field : section.fields) {
    const std::string key = path + field.key;
    settings.push_back({key, field.type, field.is_struct});
    list_settings(field, key + ".", settings);
  }
}

std::vector<Setting> all_settings() {
  Config config;
  std::vector<Setting> settings;
  list_settings(config::describe(config), "", settings);
  return settings;
}

/// "training:\n  adam:\n    eps: 1\n", and the number of its last line.
struct Yaml {
  std::string text;
  std::ptrdiff_t line;
};
Yaml nested(const std::string& key, const std::string& value) {
  std::string text, indent;
  std::size_t begin = 0;
  for (std::size_t dot = 0; (dot = key.find('.', begin)) != key.npos; begin = dot + 1) {
    text += indent + key.substr(begin, dot - begin) + ":\n";
    indent += "  ";
  }
  text += indent + key.substr(begin) + ": " + value + "\n";
  return {text, std::count(text.begin(), text.end(), '\n')};
}

/// What ends training, so that nothing else is wrong: not the setting that is looked at.
std::string ending(const std::string& key) {
  return key == "training.max_steps" ? "training.max_epochs=1" : "training.max_steps=1";
}

std::string settings_error(const std::string& yaml, const Texts& overrides) {
  try {
    config::parse<Config>(yaml, "run.yaml", overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::usage);
    return error.what();
  }
  return "";
}

Texts with(Texts first, const Texts& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Values that no setting of a type can have.
Texts impossible(const std::string& type) {
  const Texts not_numbers{".nan",  ".NaN",   "nan",  ".inf",  "-.inf", "inf", "-Infinity",
                          "1e400", "-1e400", "--1",  "1_0",   "0x10",  "010", "0o7",
                          "0b1",   "1:30",   "true", "'1'",   "1.2.3", "１",  "٣",
                          "[[1]]", "1e+",    "1 2",  "'\\0'", "$1",    "1;",  "{a: 1}"};
  if (type.starts_with("an integer"))
    return with(not_numbers, {"1.5", "99999999999999999999", "-9223372036854775809", "1e3", "[1, 2]"});
  if (type.starts_with("a number")) return with(not_numbers, {std::string(400, '9'), "[1, 2]"});
  if (type.starts_with("text")) return {"[a]", "{a: b}", "\"a\\0b\""};
  if (type.starts_with("a list")) return {"1", "{a: 1}", "[[loss]]", "[1]", "null", "\"\""};
  if (type.starts_with("true"))
    return {"1", "yes", "on", "True", "'true'", "null", "[true]", "{a: true}", "\"\""};
  if (type.starts_with("one of")) return {"1", "nonsense", "[pre]", "{a: b}", "null", "\"\"", ".nan"};
  return {};
}

TEST(SettingsLimits, NoSettingTakesWhatItsTypeIsNot) {
  for (const Setting& setting : all_settings()) {
    if (setting.is_section) continue;
    const Texts values = impossible(setting.type);
    EXPECT_FALSE(values.empty()) << setting.key << ": " << setting.type;
    for (const std::string& value : values) {
      const Yaml yaml = nested(setting.key, value);
      const std::string in_file = settings_error(yaml.text, {ending(setting.key)});
      EXPECT_THAT(in_file, AllOf(StartsWith(concat("run.yaml:", yaml.line, ": ", setting.key)),
                                 HasSubstr("expected ")))
          << yaml.text;
      EXPECT_EQ(std::count(in_file.begin(), in_file.end(), '\n'), 0) << in_file;
      const std::string override = setting.key + "=" + value;
      const std::string given = settings_error("{}", {ending(setting.key), override});
      EXPECT_THAT(given, AllOf(StartsWith("--set " + setting.key + "="), HasSubstr(": " + setting.key)))
          << override;
      EXPECT_EQ(std::count(given.begin(), given.end(), '\n'), 0) << given;
    }
  }
}

TEST(SettingsLimits, SectionsAreMappings) {
  for (const Setting& setting : all_settings()) {
    if (!setting.is_section) continue;
    for (const char* value : {"5", "[]", "null", "\"\"", "text"}) {
      const Yaml yaml = nested(setting.key, value);
      const std::string error = settings_error(yaml.text, {});
      EXPECT_THAT(error, HasSubstr(concat("run.yaml:", yaml.line, ": ", setting.key, ": "))) << yaml.text;
      EXPECT_THAT(error, HasSubstr(", expected a mapping")) << yaml.text;
    }
  }
}

TEST(SettingsLimits, NoKeyIsGivenTwiceOrTakenForAnother) {
  for (const Setting& setting : all_settings()) {
    const Yaml yaml = nested(setting.key, setting.is_section ? "{}" : "1");
    const std::string last = yaml.text.substr(yaml.text.rfind('\n', yaml.text.size() - 2) + 1);
    EXPECT_THAT(settings_error(yaml.text + last, {ending(setting.key)}),
                HasSubstr(concat("run.yaml:", yaml.line + 1, ": ", setting.key,
                                 ": given twice, first at run.yaml:", yaml.line)));
    for (const std::string& key : {setting.key + "s_", setting.key + " "}) {
      const Yaml wrong = nested('"' + key + '"', "1");
      if (key.find('.') != key.npos) continue;
      EXPECT_THAT(settings_error(wrong.text, {ending(setting.key)}),
                  HasSubstr(": unknown key, did you mean "));
    }
    EXPECT_THAT(settings_error("{}", {ending(setting.key), setting.key + "_x=1"}),
                HasSubstr(": unknown key, did you mean " + setting.key + "?"));
  }
}

/// All that is computed of a configuration before there is a model.
void expect_usable(const Config& config) {
  EXPECT_GE(config.max_pieces(), 1);
  EXPECT_GE(config.training.shards(), 1);
  EXPECT_GE(config.training.shard_tokens(), 1);
  EXPECT_GE(config.model.key_width(), 1);
  EXPECT_GE(config.model.value_width(), 1);
  for (const nn::AttentionKind kind : nn::attention_kinds) EXPECT_GE(config.model.total_heads(kind), 0);
  for (const std::int64_t length : {1, 1 << 30}) {
    EXPECT_GT(config.decoding.penalty(length), 0);
    EXPECT_GE(config.decoding.target_limit(length, config.model.max_length), 1);
    EXPECT_LE(config.decoding.target_limit(length, config.model.max_length), config.model.max_length);
  }
  const Schedule schedule(config.training.schedule, config.model.d_model);
  for (const std::int64_t step : {std::int64_t{1}, std::int64_t{1} << 40}) EXPECT_GE(schedule.rate(step), 0);
  EXPECT_EQ(config::parse<Config>(config::dump(config), "dumped"), config);
}

TEST(SettingsLimits, ExtremeNumbersAreUsableOrRefused) {
  const Texts values{"0",
                     "1",
                     "2",
                     "-1",
                     "-0",
                     "2147483647",
                     "-2147483648",
                     "1e-320",
                     "-1e300",
                     "1.7e308",
                     "1e-9",
                     "0.999999999999",
                     "2147483648",
                     "9223372036854775807",
                     "-9223372036854775808",
                     "18446744073709551615"};
  int used = 0, refused = 0;
  for (const Setting& setting : all_settings()) {
    if (!setting.type.starts_with("an integer") && !setting.type.starts_with("a number")) continue;
    for (const std::string& value : values) {
      SCOPED_TRACE(setting.key + ": " + value);
      const Yaml yaml = nested(setting.key, value);
      const Texts overrides{ending(setting.key), "data.task=copy"};
      if (const std::string error = settings_error(yaml.text, overrides); !error.empty()) {
        EXPECT_THAT(error, AllOf(StartsWith("run.yaml:"), HasSubstr(", expected ")));
        ++refused;
        continue;
      }
      expect_usable(config::parse<Config>(yaml.text, "run.yaml", overrides));
      ++used;
    }
  }
  EXPECT_GT(used, 150);
  EXPECT_GT(refused, 300);
}

TEST(SettingsLimits, SizesWhoseProductWouldOverflowAreRefused) {
  for (const auto& [setting, limits] : std::vector<std::pair<std::string, std::string>>{
           {"model.d_model=1073741824", "1073741824, expected between 1 and 8192"},
           {"model.encoder_layers=2147483648", "2147483648, expected an integer between"},
           {"model.decoder_layers=65", "65, expected between 1 and 64"},
           {"model.heads=-4", "-4, expected between 1 and 1024"},
           {"model.d_ff=1099511627776", "1099511627776, expected an integer between"},
           {"model.max_length=1000000", "1000000, expected between 2 and 65536"},
           {"training.batch_tokens=2147483647", "2147483647, expected between 1 and 16777216"},
           {"training.lanes=1025", "1025, expected an integer of 1 to 1024, or auto"},
           {"data.train_size=2147483647", "2147483647, expected between 1 and 16777216"},
           {"decoding.beam_size=100000", "100000, expected between 1 and 1024"}})
    EXPECT_THAT(settings_error("{}", {"training.max_steps=1", setting}), HasSubstr(limits));
  EXPECT_THAT(
      settings_error("{}", {"training.max_steps=1", "training.lanes=1024", "training.accumulate=1024"}),
      HasSubstr("1024 times 1024 lanes are 1048576 shards of an update, expected at most 4096"));
}

TEST(SettingsLimits, TheLargestModelIsCountedRight) {
  const auto config = config::parse<Config>(
      "{}", "run.yaml",
      Texts{"training.max_steps=1", "model.encoder_layers=64", "model.decoder_layers=64",
            "model.d_model=8192", "model.heads=1024", "model.head_dim=8192", "model.d_ff=65536",
            "model.max_length=65536", "model.positions=learned", "model.tie_embeddings=none",
            "model.bias=false"});
  expect_usable(config);
  const std::int32_t vocabulary = 1 << 24;
  nn::Transformer model(config.model, vocabulary, vocabulary);
  const std::int64_t d = 8192, width = 1024 * d, layers = 64, attention = 4 * d * width,
                     feed_forward = 2 * d * 65536;
  const std::int64_t matrices =
      layers * (3 * attention + 2 * feed_forward) + 3 * std::int64_t{vocabulary} * d;
  EXPECT_GT(model.parameters().count(), matrices);
  EXPECT_LT(model.parameters().count(), matrices + 3 * 65536 * d);
  EXPECT_THAT(testing::message_of<MemoryError>([&] { model.parameters().allocate(DType::f32); }),
              HasSubstr("out of memory: "));
}

}  // namespace
}  // namespace polyhead::train
