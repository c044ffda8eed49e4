#include "train/hdf5_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "train/hdf5_bytes.h"
#include "train/hdf5_links.h"

namespace polyhead::hdf5 {
namespace {

static_assert(std::endian::native == std::endian::little, "values are used as the file has them");

constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
constexpr std::size_t longest_path = 255;
constexpr int deepest = 32;

/// What the header of an object says of it.
struct Header {
  std::optional<Bytes> space, type, layout, link_info;
  std::vector<Bytes> links, attributes;
};

enum class Message : std::uint64_t {
  nil = 0x00,
  data_space = 0x01,
  link_info = 0x02,
  data_type = 0x03,
  fill_value = 0x05,
  link = 0x06,
  external_files = 0x07,
  data_layout = 0x08,
  group_info = 0x0A,
  filters = 0x0B,
  attribute = 0x0C,
  continuation = 0x10,
  attribute_info = 0x15
};

[[noreturn]] void refuse(Message type) {
  if (type == Message::external_files) throw FileError("has its values in another file, which is not opened");
  if (type == Message::filters) throw FileError("is compressed or filtered otherwise, expected plain values");
  throw FileError(concat("has an HDF5 message of type ", static_cast<std::uint64_t>(type),
                         ", which polyhead does not write"));
}

void set(std::optional<Bytes>& slot, Bytes body) {
  require<FileError>(!slot, "has two HDF5 messages of one kind");
  slot = body;
}

void require_attributes_in_header(Bytes body) {
  Cursor info(body);
  const std::uint64_t version = info.number(1), flags = info.number(1), heap = info.number(8);
  require<FileError>(version == 0 && flags == 0 && heap == undefined,
                     "keeps its attributes in another way than polyhead");
}

/// Adds a message to `header`, or to `continuations`.
void add(Header& header, Message type, Bytes body, std::vector<Bytes>& continuations) {
  switch (type) {
    case Message::nil:
    case Message::fill_value:
    case Message::group_info:
      return;
    case Message::data_space:
      return set(header.space, body);
    case Message::data_type:
      return set(header.type, body);
    case Message::data_layout:
      return set(header.layout, body);
    case Message::link_info:
      return set(header.link_info, body);
    case Message::link:
      return header.links.push_back(body);
    case Message::attribute:
      return header.attributes.push_back(body);
    case Message::continuation:
      return continuations.push_back(body);
    case Message::attribute_info:
      return require_attributes_in_header(body);
    default:
      refuse(type);
  }
}

void add_messages(Header& header, Bytes bytes, std::vector<Bytes>& continuations) {
  constexpr std::size_t prefix = 4, checksum = 4;
  require<FileError>(bytes.size() >= checksum, "an HDF5 structure ends too early");
  for (Cursor messages(bytes.first(bytes.size() - checksum)); messages.left() >= prefix;) {
    const auto type = static_cast<Message>(messages.number(1));
    const std::uint64_t size = messages.number(2), flags = messages.number(1);
    require<FileError>((flags & 2) == 0, "shares HDF5 messages with other objects");
    add(header, type, messages.take(size), continuations);
  }
}

Header read_header(Pieces& file, std::uint64_t address) {
  Cursor prefix(file.claim(address, 6));
  prefix.expect("OHDR", 2);
  const std::uint64_t flags = prefix.number(1);
  require<FileError>(flags <= 3, "has an HDF5 object header with flags ", flags, ", expected at most 3");
  const std::uint64_t size_bytes = std::uint64_t{1} << flags;
  const std::uint64_t size = Cursor(file.claim(address + 6, size_bytes)).number(size_bytes);
  Header header;
  std::vector<Bytes> continuations;
  require<FileError>(size <= undefined - 4, "an HDF5 structure ends too early");
  add_messages(header, file.claim(address + 6 + size_bytes, size + 4), continuations);
  for (std::size_t i = 0; i < continuations.size(); ++i) {
    Cursor place(continuations[i]);
    const std::uint64_t at = place.number(8), length = place.number(8);
    const Bytes part = file.claim(at, length);
    require<FileError>(Cursor(part).text(4) == "OCHK", "continues where there is no HDF5 object header");
    add_messages(header, part.subspan(4), continuations);
  }
  return header;
}

/// The shape that a data space message tells.
Shape read_space(Bytes body) {
  constexpr std::int64_t most_values = std::int64_t{1} << 48;
  Cursor space(body);
  const std::uint64_t version = space.number(1), rank = space.number(1), flags = space.number(1),
                      kind = space.number(1);
  require<FileError>(version == 2 && flags <= 1, "has an HDF5 data space of another version, ", version);
  require<FileError>(rank <= Shape::max_rank, "has rank ", rank, ", expected at most ", Shape::max_rank);
  require<FileError>(kind == (rank == 0 ? 0 : 1), "has no values");
  std::vector<std::int64_t> extents;
  std::int64_t values = 1;
  for (std::uint64_t i = 0; i < rank; ++i) {
    const std::uint64_t extent = space.number(8);
    require<FileError>(extent <= static_cast<std::uint64_t>(most_values / values), "has too large a shape");
    extents.push_back(static_cast<std::int64_t>(extent));
    values *= std::max(extents.back(), std::int64_t{1});
  }
  return Shape(extents);
}

/// Whether a data type message says just `bytes`. The upper half of its first is a version, which changes nothing here.
bool is_type(Bytes body, std::string_view bytes) {
  const std::string_view given(reinterpret_cast<const char*>(body.data()), body.size());
  return !given.empty() && (given[0] & 0x0f) == bytes[0] && given.substr(1).starts_with(bytes.substr(1));
}

constexpr std::string_view float32_type(
    "\x01\x20\x1f\x00\x04\x00\x00\x00\x00\x00\x20\x00\x17\x08\x00\x17\x7f\x00\x00\x00", 20),
    uint8_type("\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x08\x00", 12),
    int64_type("\x00\x08\x00\x00\x08\x00\x00\x00\x00\x00\x40\x00", 12),
    text_type("\x03\x11\x00\x00", 4);  // padded with zeros, UTF-8; its size follows

/// A type and the size of a value.
std::pair<Type, std::uint64_t> read_type(Bytes body) {
  if (is_type(body, float32_type)) return {Type::float32, 4};
  if (is_type(body, uint8_type)) return {Type::uint8, 1};
  require<FileError>(is_type(body, text_type),
                     "is of another type, expected float32, uint8 or UTF-8 text of fixed length");
  return {Type::text, Cursor(body.subspan(4)).number(4)};
}

Bytes read_values(Pieces& file, Bytes layout, std::uint64_t size) {
  Cursor place(layout);
  const std::uint64_t version = place.number(1), kind = place.number(1);
  require<FileError>(version == 3 && kind == 1,
                     "is stored in chunks, virtual or compact, expected its values in one piece");
  const std::uint64_t address = place.number(8), stored = place.number(8);
  require<FileError>(stored == size, "has ", stored, " bytes of values, expected ", size);
  if (size == 0) return {};
  require<FileError>(address != undefined, "has no values");
  return file.claim(address, size);
}

Dataset read_dataset(Pieces& file, const Header& header) {
  require<FileError>(header.space && header.type && header.layout && header.links.empty(),
                     "is neither a group nor a dataset");
  const Shape shape = read_space(*header.space);
  const auto [type, bytes] = read_type(*header.type);
  require<FileError>(type != Type::text || shape.rank() == 0, "is more than one text");
  return {type, shape, read_values(file, *header.layout, static_cast<std::uint64_t>(shape.size()) * bytes)};
}

struct Link {
  std::string name;
  std::uint64_t address;
};

void check_name(std::string_view name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
  require<FileError>(!name.empty() && name.size() <= longest_path && printable &&
                         name.find('/') == std::string_view::npos && name != "." && name != "..",
                     "has a name in it that is empty, too long or not of printable ASCII characters");
}

Link read_link(Bytes body) {
  Cursor message(body);
  const std::uint64_t version = message.number(1), flags = message.number(1);
  require<FileError>(version == 1 && flags < 32, "has links of another HDF5 version");
  const std::uint64_t kind = (flags & 8) != 0 ? message.number(1) : 0;
  if ((flags & 4) != 0) message.take(8);   // creation order
  if ((flags & 16) != 0) message.take(1);  // character set
  const std::string_view name = message.text(message.number(std::size_t{1} << (flags & 3)));
  check_name(name);
  require<FileError>(kind == 0, "'", name, "' is ",
                     kind == 1    ? "a soft"
                     : kind == 64 ? "an external"
                                  : "a user-defined",
                     " link, which is not followed");
  return {std::string(name), message.number(8)};
}

}  // namespace

/// Fills a Reader.
class Parser {
 public:
  Parser(Reader& reader, Bytes content) : reader_(reader), file_(content) {}

  void run(std::size_t user_block, std::size_t file_size) {
    constexpr std::size_t superblock_size = 48;
    try {
      Cursor superblock(file_.claim(0, superblock_size));
      superblock.text(signature.size());
      const std::uint64_t version = superblock.number(1), sizes = superblock.number(2);
      superblock.take(1);
      const std::uint64_t base = superblock.number(8), extension = superblock.number(8),
                          end = superblock.number(8);
      require<FileError>(
          version == 2 && sizes == 0x0808 && base == user_block && extension == undefined && end == file_size,
          "has another HDF5 superblock than polyhead writes");
      visit(superblock.number(8), "", 0);
    } catch (const FileError& error) {
      throw FileError(concat("/", at_, ": ", error.what()));
    }
  }

 private:
  /// An object's own messages are read before what is below it, so that `at_` tells where an error is.
  void visit(std::uint64_t address, const std::string& path, int depth) {
    at_ = path;
    const Header header = read_header(file_, address);
    for (const Bytes& body : header.attributes) add_attribute(body);
    if (!header.link_info) {
      reader_.datasets_.emplace(path, read_dataset(file_, header));
      return;
    }
    require<FileError>(!header.space && !header.type && !header.layout, "is a group and a dataset");
    require<FileError>(depth < deepest, "groups are more than ", deepest, " deep, or in a circle");
    reader_.groups_.insert(path);
    const std::vector<Link> links = read_links(header);
    for (const Link& link : links)
      visit(link.address, path.empty() ? link.name : path + "/" + link.name, depth + 1);
  }

  std::vector<Link> read_links(const Header& header) {
    Cursor info(*header.link_info);
    const std::uint64_t version = info.number(1), flags = info.number(1), heap = info.number(8);
    require<FileError>(version == 0 && flags == 0, "keeps its links in another way than polyhead");
    std::vector<Bytes> bodies = header.links;
    if (heap != undefined)
      for (const Bytes& body : dense_links(file_, heap, info.number(8))) bodies.push_back(body);
    std::vector<Link> links;
    for (const Bytes& body : bodies) links.push_back(read_link(body));
    std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.name < b.name; });
    for (std::size_t i = 0; i < links.size(); ++i) {
      require<FileError>(at_.size() + 1 + links[i].name.size() <= longest_path,
                         "has a name in it that is too long");
      require<FileError>(i == 0 || links[i].name != links[i - 1].name, "has the name '", links[i].name,
                         "' twice");
    }
    return links;
  }

  void add_attribute(Bytes body) {
    Cursor message(body);
    const std::uint64_t version = message.number(1), flags = message.number(1), name_size = message.number(2),
                        type_size = message.number(2), space_size = message.number(2);
    message.take(1);  // character set
    require<FileError>(version == 3 && flags == 0 && name_size > 0, "has attributes of another HDF5 version");
    const std::string_view name = message.text(name_size - 1);
    check_name(name);
    message.take(1);
    const Bytes type = message.take(type_size);
    const Shape shape = read_space(message.take(space_size));
    require<FileError>(is_type(type, int64_type) && shape.rank() == 0, "attribute '", name,
                       "' is not one 64-bit integer");
    const auto value = static_cast<std::int64_t>(message.number(8));
    require<FileError>(reader_.attributes_.emplace(concat(at_, "/", name), value).second, "attribute '", name,
                       "' is there twice");
  }

  Reader& reader_;
  Pieces file_;
  std::string at_;
};

const char* name(Type type) {
  return type == Type::float32 ? "float32" : type == Type::uint8 ? "uint8" : "text";
}

Reader::Reader(std::span<const std::byte> file, std::size_t user_block) {
  const Bytes content = file.subspan(std::min(user_block, file.size()));
  require<FileError>(
      content.size() >= signature.size() && Cursor(content).text(signature.size()) == signature,
      "holds no HDF5");
  Parser(*this, content).run(user_block, file.size());
}

std::vector<std::string> Reader::datasets(const std::string& group) const {
  require<FileError>(groups_.count(group) != 0, "has no group /", group);
  const std::string prefix = group + "/";
  std::vector<std::string> paths;
  for (auto entry = datasets_.lower_bound(prefix);
       entry != datasets_.end() && entry->first.starts_with(prefix); ++entry)
    paths.push_back(entry->first.substr(prefix.size()));
  return paths;
}

const Dataset& Reader::dataset(const std::string& path, Type type) const {
  const auto found = datasets_.find(path);
  require<FileError>(found != datasets_.end(), "has no dataset /", path);
  require<FileError>(found->second.type == type, "/", path, ": is of type ", hdf5::name(found->second.type),
                     ", expected ", hdf5::name(type));
  return found->second;
}

std::int64_t Reader::attribute(const std::string& group, const std::string& attribute) const {
  const auto found = attributes_.find(concat(group, "/", attribute));
  require<FileError>(found != attributes_.end(), "/", group, ": has no attribute '", attribute, "'");
  return found->second;
}

}  // namespace polyhead::hdf5
