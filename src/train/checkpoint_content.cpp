#include "train/checkpoint_content.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "polyhead/core/unicode.h"
#include "train/digest.h"
#include "train/hdf5_reader.h"

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

void check_values(const char* group, const NamedArray& array) {
  const auto bad = std::find_if_not(array.values.begin(), array.values.end(),
                                    [](float value) { return std::isfinite(value); });
  require<FileError>(bad == array.values.end(), "/", group, "/", array.path, ": value ",
                     bad - array.values.begin(), " is not finite");
}

void check_count(const char* name, std::int64_t count) {
  constexpr std::int64_t most = 1'000'000'000'000'000;
  require<FileError>(count >= 0 && count <= most, "/trainer: ", name, " ", count, ", expected 0 to ", most);
}

void check_state(const std::string& state) {
  constexpr std::size_t longest = 1 << 20;
  constexpr int deepest = 32;
  require<FileError>(state.size() <= longest, "/trainer/state: ", state.size(), " bytes, expected at most ",
                     longest);
  const auto check_depth = [=](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    require<FileError>(depth <= deepest, "/trainer/state: more than ", deepest, " levels deep");
    return true;
  };
  bool is_object = false;
  try {
    is_object = nlohmann::json::parse(state, check_depth).is_object();
  } catch (const nlohmann::json::exception&) {
  }
  require<FileError>(is_object, "/trainer/state: expected a JSON object");
}

/// What is true of every checkpoint, whoever wrote it.
void check_all(const Checkpoint& checkpoint) {
  for (const ArrayGroup& group : array_groups)
    for (const NamedArray& array : checkpoint.*group.arrays) check_values(group.path, array);
  check_count("step", checkpoint.step);
  check_count("epoch", checkpoint.epoch);
  check_state(checkpoint.state);
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

void verify_checkpoint(std::span<const std::byte> file) {
  require<FileError>(!file.empty(), "is empty, expected a checkpoint");
  const std::string_view text(reinterpret_cast<const char*>(file.data()),
                              std::min(file.size(), checkpoint_header_size));
  require<FileError>(text.starts_with(magic.substr(0, text.size())),
                     "is not a polyhead checkpoint (or its first line is damaged)");
  require<FileError>(text.size() == checkpoint_header_size, "is truncated: has ", file.size(),
                     " bytes, expected a header of ", checkpoint_header_size);
  const std::int64_t version = header_number(text, "\nversion ");
  require<FileError>(version == format_version, "has format version ", version, ", expected ",
                     format_version);
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
