#include "polyhead/core/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "polyhead/core/error.h"

namespace polyhead {
namespace {

/// One call may transfer no more than this; also keeps signals from waiting long.
constexpr std::size_t chunk = std::size_t{1} << 26;
constexpr std::string_view temporary_mark = ".tmp-";
/// For another process to replace a file; one that hangs or was stopped never will.
constexpr std::chrono::seconds writer_patience{5};

/// The result of a system call, made again when a signal interrupts it.
template <class Call>
auto retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

[[noreturn]] void fail(const std::string& path, std::string_view action, int error) {
  throw FileError(concat(path, ": cannot ", action, ": ", std::generic_category().message(error)));
}

struct stat status_of(const File& file) {
  struct stat status {};
  if (::fstat(file.id(), &status) < 0) fail(file.name(), "read", errno);
  return status;
}

/// The file that is written before it is renamed to `path`; removed again unless it was.
class Temporary {
 public:
  explicit Temporary(const std::string& path)
      : path_(path), temporary_(concat(path, temporary_mark, "polyhead")) {
    // Whoever waited for the lock finds that the file is now the other's result, or removed: not a temporary any more.
    do file_ = open();
    while (status_of(*file_).st_nlink == 0 || !is_still_named());
  }
  ~Temporary() {
    if (!renamed_) ::unlink(temporary_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  File& file() { return *file_; }
  void rename() {
    if (::rename(temporary_.c_str(), path_.c_str()) < 0) fail(path_, "replace", errno);
    renamed_ = true;
  }

 private:
  std::unique_ptr<File> open() const {
    // Without O_NONBLOCK, opening a pipe that nobody reads waits for ever.
    auto file = std::make_unique<File>(temporary_, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666, path_);
    require<FileError>(S_ISREG(status_of(*file).st_mode), temporary_, ": is in the way, not a regular file");
    require<FileError>(file->lock(writer_patience), path_, ": is being written by another process");
    return file;
  }
  bool is_still_named() const {
    struct stat named {};
    const struct stat own = status_of(*file_);
    return ::lstat(temporary_.c_str(), &named) == 0 && named.st_ino == own.st_ino &&
           named.st_dev == own.st_dev;
  }

  const std::string& path_;
  std::string temporary_;
  std::unique_ptr<File> file_;
  bool renamed_ = false;
};

/// Makes a rename last through a power failure; some file systems cannot sync a folder and say EINVAL.
void sync_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const File file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, 0, path);
  if (retry([&] { return ::fsync(file.id()); }) < 0 && errno != EINVAL) fail(path, "sync the folder", errno);
}

/// The folder that is written before it takes the place of `path`; afterwards, what was there. Removed at the end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& path)
      : path_(path), temporary_(concat(path, temporary_mark, "polyhead")) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error) fail(path_, "make the folder above", error.value());
    if (std::filesystem::exists(path_)) before_ = locked(path_);
    if (::mkdir(temporary_.c_str(), 0777) < 0 && errno != EEXIST) fail(path_, "create", errno);
    try {
      own_ = locked(temporary_);
      clear();
    } catch (...) {
      ::rmdir(temporary_.c_str());  // unless there is something in it
      throw;
    }
  }
  ~TemporaryFolder() {
    try {
      if (!removed_) remove();
    } catch (const FileError&) {  // the next call for `path` will
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  void add(const NamedContent& content) {
    File file(temporary_ + '/' + content.name, O_WRONLY | O_CREAT | O_EXCL, 0666, path_ + '/' + content.name);
    file.write(content.bytes);
    file.sync();
    file.close();
  }
  void exchange() {
    const unsigned how = before_ ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), how) < 0)
      fail(path_, "replace", errno);
    removed_ = !before_;
    sync_folder(path_);
    if (before_) remove();
  }

 private:
  std::unique_ptr<File> locked(const std::string& folder) const {
    auto file = std::make_unique<File>(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, path_);
    require<FileError>(file->lock(std::chrono::seconds(0)), path_, ": is being written by another process");
    return file;
  }
  void clear() const {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(temporary_, error)) {
      require<FileError>(entry.symlink_status().type() == std::filesystem::file_type::regular,
                         entry.path().string(), ": is in the way, not a regular file");
      if (!std::filesystem::remove(entry.path(), error)) fail(entry.path().string(), "remove", error.value());
    }
    if (error) fail(temporary_, "list", error.value());
  }
  void remove() {
    clear();
    if (::rmdir(temporary_.c_str()) < 0) fail(temporary_, "remove", errno);
    removed_ = true;
  }

  const std::string path_, temporary_;
  std::unique_ptr<File> before_, own_;  ///< hold the locks
  bool removed_ = false;
};

}  // namespace

File::File(const std::string& path, int flags, mode_t mode, const std::string& name)
    : id_(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); })),
      name_(name.empty() ? path : name) {
  if (id_ >= 0) return;
  const bool folder = (flags & O_DIRECTORY) != 0, reads = (flags & O_ACCMODE) == O_RDONLY;
  fail(name_, folder ? "open the folder" : reads ? "read" : "write", errno);
}

File::~File() {
  if (id_ >= 0) ::close(id_);
}

void File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return ::write(id_, bytes.data(), std::min(bytes.size(), chunk)); });
    if (n < 0) fail(name_, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void File::sync() {
  if (retry([&] { return ::fsync(id_); }) < 0) fail(name_, "sync", errno);
}

void File::truncate(std::int64_t size) {
  if (retry([&] { return ::ftruncate(id_, size); }) < 0) fail(name_, "truncate", errno);
}

bool File::lock(std::chrono::milliseconds patience) const {
  constexpr std::chrono::milliseconds pause{10};
  for (auto left = patience; ::flock(id_, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; left -= pause) {
    if (left <= left.zero()) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

void File::close() {
  if (id_ >= 0 && ::close(std::exchange(id_, -1)) < 0) fail(name_, "close", errno);
}

void replace_file(const std::string& path, std::span<const std::byte> bytes) {
  Temporary temporary(path);
  temporary.file().truncate(0);
  temporary.file().write(bytes);
  temporary.file().sync();
  temporary.rename();
  // Last: with it goes the lock that makes other processes wait.
  temporary.file().close();
  sync_folder(path);
}

void replace_folder(const std::string& path, std::span<const NamedContent> files) {
  std::error_code error;
  // Behind a link the folder itself, without a slash at the end.
  std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
  if (error) fail(path, "find", error.value());
  if (!whole.has_filename()) whole = whole.parent_path();
  TemporaryFolder temporary(whole.string());
  for (const NamedContent& file : files) temporary.add(file);
  temporary.exchange();
}

void remove_temporaries(const std::string& folder, std::span<const std::string_view> names) {
  std::vector<std::filesystem::path> left;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto begins = [&](std::string_view begin) { return name.starts_with(begin); };
    if (name.find(temporary_mark) != std::string::npos &&
        (names.empty() || std::any_of(names.begin(), names.end(), begins)))
      left.push_back(entry->path());
  }
  require<FileError>(!error, folder, ": cannot list: ", error.message());
  for (const std::filesystem::path& path : left) {
    std::filesystem::remove(path, error);
    require<FileError>(!error, path.string(), ": cannot remove: ", error.message());
  }
}

std::vector<std::byte> read_file(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to waits for ever.
  const File file(path, O_RDONLY | O_NONBLOCK);
  const struct stat status = status_of(file);
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

}  // namespace polyhead
