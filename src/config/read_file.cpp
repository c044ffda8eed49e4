#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "polyhead/config/yaml.h"
#include "shorten.h"
#include "tree.h"

namespace polyhead::config {
namespace {

/// A file that is open for reading. Opening never waits, not for the writer of a pipe either.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {}
  ~InputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  bool is_pipe() const {
    struct stat status {};
    return ::fstat(descriptor_, &status) == 0 && S_ISFIFO(status.st_mode);
  }
  /// As read(2), but waits for whoever writes to a pipe, and −1 is an error.
  ssize_t read(char* bytes, std::size_t size) const {
    for (;;) {
      const ssize_t count = ::read(descriptor_, bytes, size);
      if (count >= 0 || (errno != EINTR && errno != EAGAIN)) return count;
      pollfd waiting{descriptor_, POLLIN, 0};
      ::poll(&waiting, 1, -1);
    }
  }

 private:
  int descriptor_;
};

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const std::string name = one_line(path.string(), 1000);
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  require(kind != std::filesystem::file_type::not_found, name,
          ": no such file, expected a YAML configuration");
  require(kind != std::filesystem::file_type::directory, name, ": a folder, expected a YAML configuration");
  const InputFile file(path);
  require(file.is_open(), name, ": cannot be opened (", std::strerror(errno),
          "), expected a YAML configuration");
  // A pipe that nobody has opened for writing is as one at its end: somebody may be about to.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(file.is_pipe() ? 1 : 0);
  // Not from the file's size: pipes and devices have none.
  std::string text(max_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = file.read(text.data() + size, text.size() - size);
    require<FileError>(count >= 0, name, ": cannot be read: ", std::strerror(errno));
    size += static_cast<std::size_t>(count);
    if (count > 0) continue;
    if (size > 0 || std::chrono::steady_clock::now() >= patience) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  text.resize(size);
  return text;
}

}  // namespace polyhead::config
