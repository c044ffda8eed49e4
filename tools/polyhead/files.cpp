#include "files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <iostream>
#include <system_error>

#include "polyhead/core/error.h"

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
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path);
  try {
    write_all(descriptor, text, path);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  if (::close(descriptor) < 0) fail(path);
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
