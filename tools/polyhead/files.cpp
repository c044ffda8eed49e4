#include "files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "polyhead/core/error.h"
#include "polyhead/core/file.h"

namespace polyhead::tools {
namespace {

[[noreturn]] void fail(const std::string& name) {
  const int error = errno;
  if (error == EPIPE) throw ReaderGone();
  throw FileError(concat(name, ": cannot write: ", std::generic_category().message(error)));
}

void write_all(int descriptor, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(name);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_stdin() {
  std::string bytes;
  constexpr std::size_t block = 1 << 16;
  for (;;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + block);
    const ssize_t n = ::read(STDIN_FILENO, bytes.data() + size, block);
    const int error = errno;
    bytes.resize(size + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return bytes;
    require<DataError>(n > 0 || error == EINTR,
                       "stdin: cannot read: ", std::generic_category().message(error));
  }
}

}  // namespace

void hold_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0) {
      // The wrong way round, so that reading and writing fail; what is said on stderr may get lost.
      const int flags = descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY;
      [[maybe_unused]] const int opened =
          ::open("/dev/null", flags);  // takes the lowest that is free: this one
    }
}

data::Lines read_input(const std::string& path) {
  data::Lines lines = path.empty() ? data::split_lines(read_stdin()) : data::read_lines(path);
  if (lines.repaired > 0)
    complain(concat(path.empty() ? "stdin" : path, ": ", lines.repaired,
                    " lines with invalid UTF-8, repaired with U+FFFD"));
  return lines;
}

std::vector<std::string> read_beside(const std::string& path, const std::string& beside, std::size_t lines) {
  std::vector<std::string> result = read_input(path).lines;
  require<DataError>(result.size() == lines, beside, " has ", lines, " lines, but ", path, " has ",
                     result.size());
  return result;
}

void write_output(const std::string& path, std::string_view text) {
  if (path.empty()) return write_all(STDOUT_FILENO, text, "stdout");
  namespace fs = std::filesystem;
  const fs::file_status status = fs::status(path);
  if (fs::is_regular_file(status) || !fs::exists(status)) {
    // Through a link to what it names.
    replace_file(fs::is_symlink(path) ? fs::weakly_canonical(path).string() : path, text);
    return;
  }
  File file(path, O_WRONLY);
  write_all(file.id(), text, path);
  file.close();
}

void require_new(const std::string& path, std::string_view option) {
  require<FileError>(!std::filesystem::exists(std::filesystem::symlink_status(path)), path,
                     ": exists already; give another ", option);
}

void complain(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    if (end > 0) text += concat("polyhead: ", message.substr(0, end), "\n");
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  std::cerr << text << std::flush;
}

std::string number_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace polyhead::tools
