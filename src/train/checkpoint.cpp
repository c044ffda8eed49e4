#include "polyhead/train/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "polyhead/core/file.h"
#include "train/digest.h"
#include "train/hdf5.h"

namespace polyhead::train {
namespace {

constexpr std::size_t user_block = 512;
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

/// Debian's HDF5 is not made for threads.
std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Runs `action`, naming `path` in the FileErrors that come from HDF5.
template <class Action>
auto naming(const std::string& path, const Action& action) {
  try {
    return action();
  } catch (const FileError& error) {
    throw FileError(concat(path, ": ", error.what()));
  }
}

std::string header(std::span<const std::byte> content) {
  std::string text = concat(magic, "version ", format_version, "\nlength ", content.size(), "\nsha256 ",  //
                            sha256(content), "\n");
  text.resize(user_block, '\0');
  return text;
}

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

void verify(const std::string& path, std::span<const std::byte> file) {
  require<FileError>(!file.empty(), path, ": is empty, expected a checkpoint");
  const std::string_view text(reinterpret_cast<const char*>(file.data()), std::min(file.size(), user_block));
  require<FileError>(text.starts_with(magic.substr(0, text.size())), path,
                     ": is not a polyhead checkpoint (or its first line is damaged)");
  require<FileError>(text.size() == user_block, path, ": is truncated: has ", file.size(),
                     " bytes, expected a header of ", user_block);
  const std::int64_t version = header_number(text, "\nversion ");
  require<FileError>(version == format_version, path, ": has format version ", version, ", expected ",
                     format_version);
  const std::int64_t length = header_number(text, "\nlength ");
  const auto content = file.subspan(user_block);
  const auto size = static_cast<std::int64_t>(content.size());
  require<FileError>(length >= 0, path, ": is damaged: its header tells no length");
  require<FileError>(size >= length, path, ": is truncated: has ", size, " bytes after its header, expected ",
                     length);
  require<FileError>(size <= length, path, ": has ", size - length, " bytes too many: ", size,
                     " after its header, expected ", length);
  require<FileError>(text == header(content), path,
                     ": is damaged: its content does not have the SHA-256 digest", " that its header tells");
}

std::size_t expected_bytes(const Checkpoint& checkpoint) {
  constexpr std::size_t per_array = 2048;
  std::size_t bytes =
      65536 + checkpoint.state.size() + checkpoint.config.size() + checkpoint.vocabulary.size();
  for (const ArrayGroup& group : array_groups)
    for (const NamedArray& array : checkpoint.*group.arrays) bytes += array.values.size_bytes() + per_array;
  return bytes;
}

void store(hdf5::Writer& writer, const Checkpoint& checkpoint) {
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

Checkpoint load(std::span<const std::byte> file) {
  const hdf5::Reader reader(file);
  Checkpoint checkpoint;
  std::size_t total = 0;
  for (const ArrayGroup& group : array_groups) {
    for (std::string& path : reader.datasets(group.path)) {
      const Shape shape = reader.shape(concat(group.path, "/", path));
      total += static_cast<std::size_t>(shape.size());
      (checkpoint.*group.arrays).push_back({std::move(path), shape, {}});
    }
  }
  require<FileError>(total <= file.size() / sizeof(float), "its arrays claim ", total,
                     " values, more than it holds");
  checkpoint.storage = std::make_unique_for_overwrite<float[]>(total);
  float* next = checkpoint.storage.get();
  for (const ArrayGroup& group : array_groups) {
    for (NamedArray& array : checkpoint.*group.arrays) {
      const std::span<float> values(next, static_cast<std::size_t>(array.shape.size()));
      reader.floats(concat(group.path, "/", array.path), values);
      array.values = values;
      next += values.size();
    }
  }
  checkpoint.state = reader.text("trainer/state");
  checkpoint.step = reader.attribute("trainer", "step");
  checkpoint.epoch = reader.attribute("trainer", "epoch");
  checkpoint.config = reader.text("config");
  checkpoint.vocabulary = reader.bytes("vocabulary");
  return checkpoint;
}

}  // namespace

const NamedArray* find(std::span<const NamedArray> arrays, std::string_view path) {
  const auto found =
      std::find_if(arrays.begin(), arrays.end(), [&](const auto& array) { return array.path == path; });
  return found == arrays.end() ? nullptr : &*found;
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const std::lock_guard lock(hdf5_mutex());
  std::unique_ptr<hdf5::Writer> writer;
  const std::span<std::byte> image = naming(path, [&] {
    writer = std::make_unique<hdf5::Writer>(user_block, expected_bytes(checkpoint));
    store(*writer, checkpoint);
    return writer->image();
  });
  std::memcpy(image.data(), header(image.subspan(user_block)).data(), user_block);
  replace_file(path, image);
}

Checkpoint read_checkpoint(const std::string& path) {
  const std::vector<std::byte> file = read_file(path);
  verify(path, file);
  const std::lock_guard lock(hdf5_mutex());
  return naming(path, [&] { return load(file); });
}

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return (std::filesystem::path(folder) / concat("step-", digits, ".h5")).string();
}

std::vector<CheckpointFile> list_checkpoints(const std::string& folder) {
  std::vector<CheckpointFile> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    const std::int64_t step = header_number(name, "step-");
    if (step >= 0 && entries->path() == checkpoint_path(folder, step))
      files.push_back({step, entries->path()});
  }
  require<FileError>(!error, folder, ": cannot list: ", error.message());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return files;
}

LatestCheckpoint latest_valid_checkpoint(const std::string& folder) {
  LatestCheckpoint latest;
  std::vector<CheckpointFile> files = list_checkpoints(folder);
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    try {
      latest.checkpoint = read_checkpoint(file->path);
      latest.path = file->path;
      break;
    } catch (const FileError& error) {
      latest.skipped.emplace_back(error.what());
    }
  }
  return latest;
}

}  // namespace polyhead::train
