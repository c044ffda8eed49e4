#include "polyhead/data/lines.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"

namespace polyhead::data {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct Closer {
  void operator()(gzFile file) const { gzclose(file); }
};

}  // namespace

Lines split_lines(std::string_view bytes) {
  Lines result;
  if (bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string line(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.ends_with('\r')) line.pop_back();
    for (char& byte : line) {
      if (static_cast<unsigned char>(byte) < 0x20) byte = ' ';
    }
    if (!unicode::is_valid(line)) {
      line = unicode::repair(line);
      ++result.repaired;
    }
    result.lines.push_back(std::move(line));
  }
  return result;
}

std::size_t most_text() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) /
         4;
}

std::string read_bytes(const std::string& path, std::size_t most) {
  require<DataError>(!std::filesystem::is_directory(path), "data file ", path, ": is a folder");
  // zlib passes a file without gzip's magic number through as it is.
  errno = 0;
  const std::unique_ptr<gzFile_s, Closer> file(gzopen(path.c_str(), "rb"));
  require<DataError>(file != nullptr, "data file ", path, ": ", std::strerror(errno));
  std::string bytes;
  constexpr unsigned block = 1 << 20;
  int count = 0;
  do {
    const std::size_t size = bytes.size();
    bytes.resize(size + block);
    count = gzread(file.get(), bytes.data() + size, block);
    bytes.resize(size + static_cast<std::size_t>(std::max(count, 0)));
    require<DataError>(bytes.size() <= most, "data file ", path, ": more than ", most, " bytes of text");
  } while (count > 0);
  int status = Z_OK;
  const char* const problem = gzerror(file.get(), &status);
  require<DataError>(status != Z_ERRNO, "data file ", path, ": ", std::strerror(errno));
  require<DataError>(status != Z_BUF_ERROR, "data file ", path, ": the gzip data ends too early");
  require<DataError>(status == Z_OK || status == Z_STREAM_END, "data file ", path, ": damaged gzip data (",
                     problem, ")");
  return bytes;
}

Lines read_lines(const std::string& path) { return split_lines(read_bytes(path)); }

}  // namespace polyhead::data
