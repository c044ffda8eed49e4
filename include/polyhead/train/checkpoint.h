#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "polyhead/core/error.h"
#include "polyhead/tensor/tensor.h"

namespace polyhead::train {

/// Float32 values under a path such as "encoder/layers/0/self_attention/query/weight". A view.
struct NamedArray {
  std::string path;
  Shape shape;
  std::span<const float> values;
};

/// All that a run needs to go on, and all that decoding needs. The arrays of a checkpoint that was read point
/// into its `storage` and are sorted by path; for writing they may point anywhere, in any order.
struct Checkpoint {
  std::vector<NamedArray> parameters, ema;  ///< weights [out, in]; ema is empty where there is none
  std::vector<NamedArray> first_moment, second_moment;  ///< the optimizer's, by parameter path; may be empty
  std::int64_t step = 0, epoch = 0;                     ///< updates made; epochs ended
  std::string state = "{}";                             ///< the trainer's other state, as JSON
  std::string config;                                   ///< the resolved configuration, as YAML in UTF-8
  std::string vocabulary;                               ///< tokenizers, as bytes
  std::string path = "checkpoint";                      ///< of the file that it was read from; for messages
  std::unique_ptr<float[]> storage;
};

/// The array at `path`, or null.
const NamedArray* find(std::span<const NamedArray> arrays, std::string_view path);

/// Writes a checkpoint so that `path` holds the old or the new file at every moment, also after a crash: to
/// `path`.tmp-polyhead, synced, renamed. Equal content gives equal bytes. Throws FileError, and leaves
/// neither a change nor a temporary file, when the file cannot be written; also when a path is used twice or
/// cannot name a dataset, `values` are not as many as `shape` says or not finite, or read_checkpoint() would refuse it
/// otherwise. `before_writing`, where there is one, is called when the file has been made in memory, and nothing of it written.
///
/// The file is HDF5 after a user block of 512 bytes, text padded with zeros:
///     polyhead checkpoint
///     version 1
///     length <bytes after the user block>
///     sha256 <of those bytes, hexadecimal>
/// Groups /parameters, /ema, /optimizer/first_moment, /optimizer/second_moment of float32 datasets; /trainer
/// with attributes step and epoch (int64) and dataset state (JSON text); /config (YAML text); /vocabulary
/// (uint8).
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint,
                      const std::function<void()>& before_writing = {});

/// A checkpoint whose content is not what was written. What cannot be read for another reason (the system's, memory, a format
/// of another version) is a FileError and no more: it may be whole.
struct DamagedCheckpoint : FileError {
  using FileError::FileError;
};

/// Reads a checkpoint, whoever made it: its content is read without the HDF5 library (hdf5_reader.h), opens no other file
/// and is checked as a whole. Throws FileError when the file is missing, no regular file, no checkpoint, of another version,
/// truncated, altered in any byte, or laid out otherwise than write_checkpoint() does it; when a value is not finite, a
/// count or a second moment negative, the state no JSON object or not that of a trainer after so many updates. Wrong content is
/// a DamagedCheckpoint. Takes time in proportion to the file's size, and memory of at most 16 times
/// that size and 64 MiB.
Checkpoint read_checkpoint(const std::string& path);

/// The path in `folder` of the checkpoint after `step` updates: step-00000040.h5.
std::string checkpoint_path(const std::string& folder, std::int64_t step);

struct CheckpointFile {
  std::int64_t step = 0;
  std::string path;
};
/// The files of `folder` that are named as checkpoint_path() names them, by step. None when there is no such
/// folder. Throws FileError when it cannot be listed.
std::vector<CheckpointFile> list_checkpoints(const std::string& folder);
/// Throws FileError also when the checkpoint is of another step than its name says.
Checkpoint read_checkpoint(const CheckpointFile& file);

struct LatestCheckpoint {
  std::string path;                      ///< empty when there is none
  std::optional<Checkpoint> checkpoint;  ///< its content
  std::vector<std::string> skipped;      ///< what is wrong with newer ones, which are damaged; newest first
};
/// The checkpoint of the highest step in `folder` that is not damaged. Throws FileError when one cannot be read for another
/// reason, or is of another step than its name says.
LatestCheckpoint latest_valid_checkpoint(const std::string& folder);

}  // namespace polyhead::train
