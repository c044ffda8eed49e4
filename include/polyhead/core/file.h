#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Files, so that what a disk or the system refuses is a FileError "PATH: cannot <what>: <reason>" and never a file that is
/// half written.
namespace polyhead {

/// An open file, closed at the end.
class File {
 public:
  /// open(2) with `flags` and O_CLOEXEC; `mode` is of a file that it makes. Errors name `name`, or `path` without one.
  File(const std::string& path, int flags, mode_t mode = 0666, const std::string& name = "");
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int id() const { return id_; }
  const std::string& name() const { return name_; }
  /// All of `bytes`, at the file's position.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Until the bytes are where a power failure leaves them.
  void sync();
  void truncate(std::int64_t size);
  /// Locks it against other processes, and against this one where it has opened the file again (flock(2)), until it is closed.
  /// Whether that was done within `patience`; it is where the file system has no locks: one process at a time is up to the
  /// user there.
  bool lock(std::chrono::milliseconds patience) const;
  /// To be told of what closing finds wrong; does nothing the second time.
  void close();

 private:
  int id_;
  std::string name_;
};

/// Replaces `path` by a file of `bytes`, or leaves it as it was: written beside it, to `path`.tmp-polyhead, synced, renamed,
/// and the folder synced. No temporary file is left, unless the process is killed; the next call for `path` then takes it
/// over. Two processes that replace one file do so one after the other; one that would wait for more than a few seconds throws.
void replace_file(const std::string& path, std::span<const std::byte> bytes);
inline void replace_file(const std::string& path, std::string_view text) {
  replace_file(path, std::as_bytes(std::span(text)));
}

struct NamedContent {
  std::string name, bytes;
};

/// Replaces the folder `path` by one that holds `files` and nothing else, or leaves it as it was: written beside it, to
/// `path`.tmp-polyhead, then exchanged for it at once (Linux's renameat2); what was in it, which may be regular files alone,
/// is removed. Makes the folders above it. Of two processes that replace a folder at once the second throws. A process that
/// is killed leaves the old folder or the new one, and the other beside it until the next call for `path`.
void replace_folder(const std::string& path, std::span<const NamedContent> files);

/// Removes the files of `folder` that replace_file() left there when a process was killed and that were to replace files
/// whose names begin with one of `names`; any file, where there are none. Nobody may be replacing one of these.
void remove_temporaries(const std::string& folder, std::span<const std::string_view> names = {});

/// All bytes of a regular file.
std::vector<std::byte> read_file(const std::string& path);

}  // namespace polyhead
