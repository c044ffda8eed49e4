#include "polyhead/data/lines.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>

#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"

namespace polyhead::data {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

constexpr std::string_view gzip_magic = "\x1F\x8B";
constexpr unsigned block = 1 << 20;

/// The bytes of a file, a block at a time.
class Input {
 public:
  explicit Input(const std::string& path) : path_(path), buffer_(block, '\0') {
    std::error_code none;  // opening says what is wrong
    require(!std::filesystem::is_directory(path, none), "is a folder");
    errno = 0;
    file_.open(path, std::ios::binary);
    require(file_.is_open(), std::strerror(errno));
    next();
  }
  /// What there is of the file at the moment; empty at its end.
  std::string_view rest() const { return rest_; }
  void next() {
    file_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    require(!file_.bad(), std::strerror(errno));
    rest_ = {buffer_.data(), static_cast<std::size_t>(file_.gcount())};
  }
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    polyhead::require<DataError>(condition, "data file ", path_, ": ", parts...);
  }

 private:
  std::string path_, buffer_;
  std::string_view rest_;
  std::ifstream file_;
};

struct Inflater {
  z_stream stream{};
  Inflater() {
    constexpr int only_gzip = 16;
    if (inflateInit2(&stream, MAX_WBITS + only_gzip) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  void give(std::string_view bytes) {
    stream.next_in = reinterpret_cast<z_const Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
  }
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
  Input input(path);
  std::string bytes;
  const auto take = [&](std::size_t size) {
    input.require(size <= most, "more than ", most, " bytes of text");
    bytes.resize(size);
  };
  if (!input.rest().starts_with(gzip_magic)) {
    for (; !input.rest().empty(); input.next()) {
      const std::size_t size = bytes.size();
      take(size + input.rest().size());
      std::ranges::copy(input.rest(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    }
    return bytes;
  }
  Inflater inflater;
  z_stream& z = inflater.stream;
  bool inside = true;  // a member of the gzip file, of which there may be several
  for (; !input.rest().empty(); input.next())
    for (inflater.give(input.rest()); z.avail_in > 0;) {
      if (!inside && *z.next_in == 0) {  // tapes are padded with zeros
        ++z.next_in;
        --z.avail_in;
        continue;
      }
      if (!inside) {
        input.require(*z.next_in == static_cast<unsigned char>(gzip_magic.front()),
                      "something that is no gzip follows the gzip data");
        inflateReset(&z);
      }
      const std::size_t size = bytes.size();
      bytes.resize(size + block);
      z.next_out = reinterpret_cast<Bytef*>(bytes.data() + size);
      z.avail_out = block;
      const int status = inflate(&z, Z_NO_FLUSH);
      take(size + block - z.avail_out);
      input.require(status == Z_OK || status == Z_STREAM_END, "damaged gzip data (", z.msg ? z.msg : "?",
                    ")");
      inside = status == Z_OK;
    }
  input.require(!inside, "the gzip data ends too early");
  return bytes;
}

Lines read_lines(const std::string& path) { return split_lines(read_bytes(path)); }

}  // namespace polyhead::data
