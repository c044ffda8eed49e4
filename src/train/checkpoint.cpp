#include "polyhead/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "polyhead/core/file.h"
#include "polyhead/core/memory.h"
#include "train/checkpoint_content.h"
#include "train/hdf5_reader.h"

namespace polyhead::train {
namespace {

/// Debian's HDF5, which writes, is not made for threads.
std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Runs `action`, whose FileErrors become an E that names `path`.
template <class E = FileError, class Action>
auto naming(const std::string& path, const Action& action) {
  try {
    return action();
  } catch (const FileError& error) {
    throw E(concat(path, ": ", error.what()));
  }
}

/// A file that has more bytes than memory is not begun with.
void check_size(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  require<FileError>(error || std::cmp_less_equal(size, memory_limit()), path, ": has ", size,
                     " bytes, more than the ", memory_limit(), " of memory that can be had");
}

std::size_t expected_bytes(const Checkpoint& checkpoint) {
  constexpr std::size_t per_array = 2048;
  std::size_t bytes =
      65536 + checkpoint.state.size() + checkpoint.config.size() + checkpoint.vocabulary.size();
  for (const auto* arrays :
       {&checkpoint.parameters, &checkpoint.ema, &checkpoint.first_moment, &checkpoint.second_moment})
    for (const NamedArray& array : *arrays) bytes += array.values.size_bytes() + per_array;
  return bytes;
}

/// The number in "step-<number>.h5", or −1.
std::int64_t step_of(std::string_view name) {
  constexpr std::string_view label = "step-";
  std::int64_t step = -1;
  if (name.starts_with(label)) std::from_chars(name.data() + label.size(), name.data() + name.size(), step);
  return step;
}

}  // namespace

const NamedArray* find(std::span<const NamedArray> arrays, std::string_view path) {
  const auto found =
      std::find_if(arrays.begin(), arrays.end(), [&](const auto& array) { return array.path == path; });
  return found == arrays.end() ? nullptr : &*found;
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint,
                      const std::function<void()>& before_writing) {
  const std::lock_guard lock(hdf5_mutex());
  std::unique_ptr<hdf5::Writer> writer;
  const std::span<std::byte> image = naming(path, [&] {
    writer = std::make_unique<hdf5::Writer>(checkpoint_header_size, expected_bytes(checkpoint));
    store_checkpoint(*writer, checkpoint);
    const std::span<std::byte> file = writer->image();
    // What could not be read again, as from another version of HDF5, must not take the place of what can.
    const hdf5::Reader readable(file, checkpoint_header_size);
    return file;
  });
  const std::string header = checkpoint_header(image.subspan(checkpoint_header_size));
  std::memcpy(image.data(), header.data(), header.size());
  if (before_writing) before_writing();
  replace_file(path, image);
}

Checkpoint read_checkpoint(const std::string& path) {
  check_size(path);
  const std::vector<std::byte> file = read_file(path);
  naming(path, [&] { check_version(file); });
  return naming<DamagedCheckpoint>(path, [&] {
    verify_checkpoint(file);
    Checkpoint checkpoint = parse_checkpoint(file);
    checkpoint.path = path;
    return checkpoint;
  });
}

Checkpoint read_checkpoint(const CheckpointFile& file) {
  Checkpoint checkpoint = read_checkpoint(file.path);
  require<FileError>(checkpoint.step == file.step, file.path, ": is of step ", checkpoint.step, ", expected ",
                     file.step, " as its name says");
  return checkpoint;
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
    const std::int64_t step = step_of(name);
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
      latest.checkpoint = read_checkpoint(*file);
      latest.path = file->path;
      break;
    } catch (const DamagedCheckpoint& error) {
      latest.skipped.emplace_back(error.what());
    }
  }
  return latest;
}

}  // namespace polyhead::train
