#include "train/checkpoint_content.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "polyhead/core/unicode.h"
#include "train/digest.h"
#include "train/hdf5_reader.h"
#include "train/trainer_state.h"

namespace polyhead::train {
namespace {

constexpr std::string_view magic = "polyhead checkpoint\n";
constexpr std::int64_t format_version = 1;

struct ArrayGroup {
  const char* path;
  std::vector<NamedArray> Checkpoint::*arrays;
};
constexpr std::array<ArrayGroup, 4> array_groups{{{"parameters", &Checkpoint::parameters},
                                                  {"ema", &Checkpoint::ema},
                                                  {"optimizer/first_moment", &Checkpoint::first_moment},
                                                  {"optimizer/second_moment", &Checkpoint::second_moment}}};

/// The number after `label` in the header, or −1.
std::int64_t header_number(std::string_view text, std::string_view label) {
  const std::size_t begin = text.find(label);
  std::int64_t value = -1;
  if (begin != std::string_view::npos) {
    const char* digits = text.data() + begin + label.size();
    std::from_chars(digits, text.data() + text.size(), value);
  }
  return value;
}

/// As much of the header as `file` has.
std::string_view header_of(std::span<const std::byte> file) {
  return {reinterpret_cast<const char*>(file.data()), std::min(file.size(), checkpoint_header_size)};
}

void check_values(const char* group, const NamedArray& array) {
  const auto bad = std::find_if_not(array.values.begin(), array.values.end(),
                                    [](float value) { return std::isfinite(value); });
  require<FileError>(bad == array.values.end(), "/", group, "/", array.path, ": value ",
                     bad - array.values.begin(), " is not finite");
}

/// Means of squares.
void check_second_moment(const NamedArray& array) {
  const auto bad =
      std::find_if(array.values.begin(), array.values.end(), [](float value) { return value < 0; });
  require<FileError>(bad == array.values.end(), "/optimizer/second_moment/", array.path, ": value ",
                     bad - array.values.begin(), " is negative");
}

void check_count(const char* name, std::int64_t count) {
  constexpr std::int64_t most = 1'000'000'000'000'000;
  require<FileError>(count >= 0 && count <= most, "/trainer: ", name, " ", count, ", expected 0 to ", most);
}

/// A JSON object that names nothing twice.
nlohmann::json checked_json(const std::string& state) {
  constexpr std::size_t longest = 1 << 20;
  constexpr int deepest = 32;
  require<FileError>(state.size() <= longest, "/trainer/state: ", state.size(), " bytes, expected at most ",
                     longest);
  using Event = nlohmann::json::parse_event_t;
  std::array<std::set<std::string>, deepest + 2> keys;  // by depth, of the objects that are open
  const auto check = [&](int depth, Event event, const nlohmann::json& parsed) {
    require<FileError>(depth <= deepest, "/trainer/state: more than ", deepest, " levels deep");
    if (event == Event::object_start) keys.at(static_cast<std::size_t>(depth) + 1).clear();
    if (event == Event::key)
      require<FileError>(keys.at(static_cast<std::size_t>(depth)).insert(parsed.get<std::string>()).second,
                         "/trainer/state: ", parsed.dump().substr(0, 40), " is there twice");
    return true;
  };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(state, check);
  } catch (const nlohmann::json::exception&) {
  }
  require<FileError>(json.is_object(), "/trainer/state: expected a JSON object");
  return json;
}

void check_state(const Checkpoint& checkpoint) {
  // One that no training wrote may tell nothing of it.
  if (!checked_json(checkpoint.state).contains("step")) return;
  const TrainerState state = TrainerState::parse(checkpoint.state);
  require<FileError>(state.step == checkpoint.step && state.epoch == checkpoint.epoch,
                     "/trainer/state: step ", state.step, " and epoch ", state.epoch, ", expected ",
                     checkpoint.step, " and ", checkpoint.epoch, " as of /trainer");
}

/// What is true of every checkpoint, whoever wrote it.
void check_all(const Checkpoint& checkpoint) {
  for (const ArrayGroup& group : array_groups)
    for (const NamedArray& array : checkpoint.*group.arrays) check_values(group.path, array);
  for (const NamedArray& array : checkpoint.second_moment) check_second_moment(array);
  check_count("step", checkpoint.step);
  check_count("epoch", checkpoint.epoch);
  check_state(checkpoint);
  require<FileError>(unicode::is_valid(checkpoint.config), "/config: expected UTF-8");
}

std::string bytes_of(const hdf5::Dataset& dataset) {
  return {reinterpret_cast<const char*>(dataset.values.data()), dataset.values.size()};
}

/// Without the zeros that pad it.
std::string padded_text(const hdf5::Dataset& dataset) {
  std::string value = bytes_of(dataset);
  value.erase(value.find_last_not_of('\0') + 1);
  return value;
}

void read_arrays(const hdf5::Reader& reader, Checkpoint& checkpoint) {
  const auto of = [&](const ArrayGroup& group, const std::string& path) -> const hdf5::Dataset& {
    return reader.dataset(concat(group.path, "/", path), hdf5::Type::float32);
  };
  std::size_t total = 0;
  for (const ArrayGroup& group : array_groups) {
    for (std::string& path : reader.datasets(group.path)) {
      const Shape shape = of(group, path).shape;
      total += static_cast<std::size_t>(shape.size());
      (checkpoint.*group.arrays).push_back({std::move(path), shape, {}});
    }
  }
  checkpoint.storage = std::make_unique_for_overwrite<float[]>(total);
  float* next = checkpoint.storage.get();
  for (const ArrayGroup& group : array_groups) {
    for (NamedArray& array : checkpoint.*group.arrays) {
      const auto stored = of(group, array.path).values;
      array.values = {next, stored.size() / sizeof(float)};
      if (!stored.empty()) std::memcpy(next, stored.data(), stored.size());
      next += array.values.size();
    }
  }
}

}  // namespace

std::string checkpoint_header(std::span<const std::byte> content) {
  std::string text = concat(magic, "version ", format_version, "\nlength ", content.size(), "\nsha256 ",  //
                            sha256(content), "\n");
  text.resize(checkpoint_header_size, '\0');
  return text;
}

void check_version(std::span<const std::byte> file) {
  const std::string_view text = header_of(file);
  const std::int64_t version = header_number(text, "\nversion ");
  require<FileError>(!text.starts_with(magic) || version < 0 || version == format_version,
                     "has format version ", version, ", expected ", format_version);
}

void verify_checkpoint(std::span<const std::byte> file) {
  require<FileError>(!file.empty(), "is empty, expected a checkpoint");
  const std::string_view text = header_of(file);
  require<FileError>(text.starts_with(magic.substr(0, text.size())),
                     "is not a polyhead checkpoint (or its first line is damaged)");
  require<FileError>(text.size() == checkpoint_header_size, "is truncated: has ", file.size(),
                     " bytes, expected a header of ", checkpoint_header_size);
  const std::int64_t length = header_number(text, "\nlength ");
  const auto content = file.subspan(checkpoint_header_size);
  const auto size = static_cast<std::int64_t>(content.size());
  require<FileError>(length >= 0, "is damaged: its header tells no length");
  require<FileError>(size >= length, "is truncated: has ", size, " bytes after its header, expected ",
                     length);
  require<FileError>(size <= length, "has ", size - length, " bytes too many: ", size,
                     " after its header, expected ", length);
  require<FileError>(text == checkpoint_header(content),
                     "is damaged: its content does not have the SHA-256 digest that its header tells");
}

void store_checkpoint(hdf5::Writer& writer, const Checkpoint& checkpoint) {
  check_all(checkpoint);
  for (const ArrayGroup& group : array_groups) {
    writer.group(group.path);
    std::vector<const NamedArray*> sorted;
    for (const NamedArray& array : checkpoint.*group.arrays) sorted.push_back(&array);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->path < b->path; });
    for (const NamedArray* array : sorted)
      writer.floats(concat(group.path, "/", array->path), array->shape, array->values);
  }
  writer.text("trainer/state", checkpoint.state);
  writer.attribute("trainer", "step", checkpoint.step);
  writer.attribute("trainer", "epoch", checkpoint.epoch);
  writer.text("config", checkpoint.config);
  writer.bytes("vocabulary", checkpoint.vocabulary);
}

Checkpoint parse_checkpoint(std::span<const std::byte> file) {
  const hdf5::Reader reader(file, checkpoint_header_size);
  Checkpoint checkpoint;
  read_arrays(reader, checkpoint);
  checkpoint.state = padded_text(reader.dataset("trainer/state", hdf5::Type::text));
  checkpoint.step = reader.attribute("trainer", "step");
  checkpoint.epoch = reader.attribute("trainer", "epoch");
  checkpoint.config = padded_text(reader.dataset("config", hdf5::Type::text));
  checkpoint.vocabulary = bytes_of(reader.dataset("vocabulary", hdf5::Type::uint8));
  check_all(checkpoint);
  return checkpoint;
}

}  // namespace polyhead::train
