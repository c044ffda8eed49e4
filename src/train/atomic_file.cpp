#include "train/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "polyhead/core/error.h"

namespace polyhead::train {
namespace {

/// One call may transfer no more than this; also keeps signals from waiting long.
constexpr std::size_t chunk = std::size_t{1} << 26;

/// The result of a system call, made again when a signal interrupts it.
template <class Call>
auto retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  throw FileError(concat(path, ": cannot ", action, ": ", std::generic_category().message(error)));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, mode_t mode = 0)
      : id_(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); })) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int id() const { return id_; }
  int close() { return id_ < 0 ? 0 : ::close(std::exchange(id_, -1)); }

 private:
  int id_;
};

/// Removes a file unless it was renamed.
struct Temporary {
  const std::string& path;
  bool renamed = false;
  ~Temporary() {
    if (!renamed) ::unlink(path.c_str());
  }
};

void write_all(const std::string& path, int id, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return ::write(id, bytes.data(), std::min(bytes.size(), chunk)); });
    if (n < 0) fail(path, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

/// Makes a rename last through a power failure; some file systems cannot sync a folder and say EINVAL.
void sync_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (file.id() < 0) fail(path, "open the folder", errno);
  if (retry([&] { return ::fsync(file.id()); }) < 0 && errno != EINVAL) fail(path, "sync the folder", errno);
}

}  // namespace

void replace_file(const std::string& path, std::span<const std::byte> bytes) {
  const std::string temporary_path = concat(path, ".tmp-", ::getpid());
  Descriptor file(temporary_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
  if (file.id() < 0) fail(path, "write", errno);
  Temporary temporary{temporary_path};
  write_all(path, file.id(), bytes);
  if (retry([&] { return ::fsync(file.id()); }) < 0) fail(path, "sync", errno);
  if (file.close() < 0) fail(path, "close", errno);
  if (::rename(temporary_path.c_str(), path.c_str()) < 0) fail(path, "replace", errno);
  temporary.renamed = true;
  sync_folder(path);
}

std::vector<std::byte> read_file(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to waits for ever.
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);
  if (file.id() < 0) fail(path, "read", errno);
  struct stat status {};
  if (::fstat(file.id(), &status) < 0) fail(path, "read", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "read", EISDIR);
  require<FileError>(S_ISREG(status.st_mode), path, ": not a regular file");
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        retry([&] { return ::read(file.id(), &bytes[done], std::min(bytes.size() - done, chunk)); });
    if (n < 0) fail(path, "read", errno);
    require<FileError>(n > 0, path, ": became shorter while it was read");
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace polyhead::train
