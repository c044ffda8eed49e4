#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "polyhead/core/memory.h"
#include "polyhead/train/trainer.h"
#include "support/message.h"
#include "support/small_checkpoint.h"
#include "train/checkpoint_content.h"
#include "train/trainer_state.h"

/// Checkpoints that somebody damaged, or made to do damage.
namespace polyhead::train::hostile {
namespace {

namespace fs = std::filesystem;
using polyhead::testing::message_of;
using polyhead::testing::small_model;
using polyhead::testing::SmallModel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// What is done to an open HDF5 file.
using Change = std::function<void(hid_t)>;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string slurp_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Gives a file the header that its content asks for.
void seal(std::string& file) {
  const std::string content = file.substr(checkpoint_header_size);
  file.replace(0, checkpoint_header_size, checkpoint_header(bytes_of(content)));
}

class HostileCheckpoint : public ::testing::Test {
 protected:
  HostileCheckpoint() {
    std::string name = (fs::temp_directory_path() / "polyhead-hostile-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~HostileCheckpoint() override {
    H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
    fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// A sound checkpoint of the small model.
  std::string sound() const {
    write_checkpoint(path("sound.h5"), small_.checkpoint);
    return path("sound.h5");
  }

  /// A sound checkpoint, changed through the HDF5 library under a digest that is right.
  std::string crafted(const Change& change) const {
    const std::string file = path("crafted.h5");
    fs::copy_file(sound(), file, fs::copy_options::overwrite_existing);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    const hid_t open = H5Fopen(file.c_str(), H5F_ACC_RDWR, access);
    H5Pclose(access);
    EXPECT_GE(open, 0);
    change(open);
    EXPECT_GE(H5Fclose(open), 0);
    std::string content = slurp_file(file);
    seal(content);
    spill_file(file, content);
    return file;
  }

  /// Expects that the changed checkpoint is refused with one line that names the file and says `why`.
  void refuses(const std::string& why, const Change& change) const {
    SCOPED_TRACE(why);
    const std::string file = crafted(change);
    const std::string message = message_of<FileError>([&] { read_checkpoint(file); });
    EXPECT_THAT(message, AllOf(StartsWith(file + ": "), HasSubstr(why), Not(HasSubstr("\n"))));
  }

  /// The same of a checkpoint that can be read but is of no model.
  void refuses_model(const std::string& why, const std::function<void(Checkpoint&)>& change) const {
    SCOPED_TRACE(why);
    SmallModel changed = small_model();
    change(changed.checkpoint);
    write_checkpoint(path("model.h5"), changed.checkpoint);
    const std::string message = message_of<FileError>([&] { load_model(path("model.h5")); });
    EXPECT_THAT(message, AllOf(StartsWith(path("model.h5") + ": "), HasSubstr(why), Not(HasSubstr("\n"))));
  }

  std::string folder_;
  SmallModel small_ = small_model();

 private:
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

constexpr const char* weight = "parameters/output/bias";

/// A property list without times, which polyhead does not write.
hid_t plain(hid_t kind) {
  const hid_t list = H5Pcreate(kind);
  H5Pset_obj_track_times(list, false);
  return list;
}

void make_group(hid_t file, const std::string& path) {
  const hid_t group = H5Gcreate2(file, path.c_str(), H5P_DEFAULT, plain(H5P_GROUP_CREATE), H5P_DEFAULT);
  EXPECT_GE(group, 0) << path;
  H5Gclose(group);
}

/// Puts a dataset in place of what is at `path`. Identifiers that are left open end with the file.
hid_t replace(hid_t file, const char* path, hid_t type, const std::vector<hsize_t>& extents, hid_t creation) {
  H5Ldelete(file, path, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  const hid_t set = H5Dcreate2(file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  EXPECT_GE(set, 0) << path;
  H5Sclose(space);
  return set;
}

Change dataset(const char* path, hid_t type, std::vector<hsize_t> extents,
               hid_t creation = plain(H5P_DATASET_CREATE)) {
  return [=](hid_t file) { H5Dclose(replace(file, path, type, extents, creation)); };
}

hid_t early() {
  const hid_t creation = plain(H5P_DATASET_CREATE);
  H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
  return creation;
}

hid_t chunked(std::vector<hsize_t> chunk) {
  const hid_t creation = plain(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  return creation;
}

void set_attribute(hid_t file, const char* group, const char* name, hid_t type, hid_t space,
                   const void* value) {
  H5Adelete_by_name(file, group, name, H5P_DEFAULT);
  const hid_t attribute =
      H5Acreate_by_name(file, group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(attribute, 0);
  if (value != nullptr) {
    EXPECT_GE(H5Awrite(attribute, H5T_NATIVE_INT64, value), 0);
  }
  H5Aclose(attribute);
}

Change attribute(const char* name, std::int64_t value) {
  return
      [=](hid_t file) { set_attribute(file, "trainer", name, H5T_STD_I64LE, H5Screate(H5S_SCALAR), &value); };
}

Change text(const char* path, std::string value) {
  return [=](hid_t file) {
    H5Ldelete(file, path, H5P_DEFAULT);
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, value.size());
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const hid_t set =
        H5Dcreate2(file, path, type, space, H5P_DEFAULT, plain(H5P_DATASET_CREATE), H5P_DEFAULT);
    EXPECT_GE(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()), 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
  };
}

/// How many of all bytes, or lengths, are tried: all where POLYHEAD_LONG_TESTS is set.
std::size_t stride(std::size_t thinned) { return std::getenv("POLYHEAD_LONG_TESTS") ? 1 : thinned; }

TEST_F(HostileCheckpoint, IsSoundBeforeItIsChanged) {
  const std::string file = crafted([](hid_t) {});
  const LoadedModel loaded = load_model(file);
  EXPECT_EQ(loaded.step, 7);
  const auto& parameter = small_.model->parameters().at("decoder/embedding/weight");
  EXPECT_TRUE(std::ranges::equal(loaded.model->parameters().value(parameter).span<const float>(),
                                 small_.model->parameters().value(parameter).span<const float>()));
}

TEST_F(HostileCheckpoint, NoAlteredByteAndNoTruncationIsTrusted) {
  std::string file = slurp_file(sound());
  const auto error = [&](std::size_t size) {
    return message_of<FileError>([&] { verify_checkpoint(bytes_of(file).first(size)); });
  };
  for (std::size_t i = 0; i < file.size(); i += i < checkpoint_header_size ? 1 : stride(11)) {
    const char before = file[i];
    file[i] = static_cast<char>(before ^ (1 << (i % 8)));
    ASSERT_NE(error(file.size()), "nothing thrown") << "byte " << i;
    file[i] = before;
  }
  for (std::size_t size = 0; size < file.size(); size += stride(3))
    ASSERT_THAT(error(size), ::testing::AnyOf(HasSubstr("is truncated"), HasSubstr("is empty"))) << size;
  EXPECT_EQ(error(file.size()), "nothing thrown");
}

// Behind a digest that is right, where damage has no check but the reader's own.
TEST_F(HostileCheckpoint, AnyBytesAreReadOrRefused) {
  const std::string file = slurp_file(sound());
  std::size_t read = 0, refused = 0;
  const auto parse = [&](const std::string& changed) {
    try {
      parse_checkpoint(bytes_of(changed));
      ++read;
    } catch (const FileError&) {
      ++refused;
    }
  };
  for (std::size_t i = checkpoint_header_size; i < file.size(); i += stride(17)) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    parse(changed);
    const std::uint64_t numbers[] = {0, ~std::uint64_t{0}, std::uint64_t{1} << 62, file.size()};
    const std::uint64_t number = numbers[i / 17 % 4];
    std::memcpy(&changed[i], &number, std::min(sizeof number, changed.size() - i));
    parse(changed);
  }
  for (std::size_t size = 0; size < file.size(); size += stride(17)) parse(file.substr(0, size));
  EXPECT_GT(read, 100U);
  EXPECT_GT(refused, 100U);
}

TEST_F(HostileCheckpoint, WrongTypes) {
  const hid_t compound = H5Tcreate(H5T_COMPOUND, 8), opaque = H5Tcreate(H5T_OPAQUE, 4),
              enumeration = H5Tenum_create(H5T_NATIVE_INT), variable = H5Tvlen_create(H5T_NATIVE_FLOAT),
              string = H5Tcopy(H5T_C_S1);
  H5Tinsert(compound, "a", 0, H5T_NATIVE_FLOAT);
  const int zero = 0;
  H5Tenum_insert(enumeration, "zero", &zero);
  H5Tset_size(string, H5T_VARIABLE);
  const hsize_t two = 2;
  for (const hid_t type :
       {H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_STD_I32LE, H5T_STD_I8LE, H5T_STD_REF_OBJ, compound, opaque,
        enumeration, variable, string, H5Tarray_create2(H5T_IEEE_F32LE, 1, &two)}) {
    refuses("/parameters/output/bias: is of another type", dataset(weight, type, {7}, early()));
  }
  refuses("/parameters/output/bias: is of type uint8, expected float32",
          dataset(weight, H5T_STD_U8LE, {7}, early()));
  refuses("/vocabulary: is of type float32, expected uint8",
          dataset("vocabulary", H5T_IEEE_F32LE, {7}, early()));
  refuses("/config: is of another type", dataset("config", string, {1}, early()));  // on the heap
  refuses("/config: is of type uint8, expected text", dataset("config", H5T_STD_U8LE, {7}, early()));
  refuses("has no dataset /config", [](hid_t file) {
    H5Ldelete(file, "config", H5P_DEFAULT);
    make_group(file, "config");
  });
  refuses("has no group /parameters",
          [](hid_t file) { H5Dclose(replace(file, "parameters", H5T_IEEE_F32LE, {7}, early())); });
}

TEST_F(HostileCheckpoint, WrongShapes) {
  refuses("/parameters/output/bias: has rank 5, expected at most 4",
          dataset(weight, H5T_IEEE_F32LE, {1, 1, 1, 1, 7}));
  const hsize_t huge = hsize_t{1} << 60;
  refuses("/parameters/output/bias: has too large a shape", dataset(weight, H5T_IEEE_F32LE, {huge}));
  refuses("/parameters/output/bias: has too large a shape",
          dataset(weight, H5T_IEEE_F32LE, {0, 1U << 31, 1U << 31, 2}));
  // Named, never allocated.
  refuses("/parameters/output/bias: has no values", dataset(weight, H5T_IEEE_F32LE, {hsize_t{1} << 40}));
  refuses("/parameters/output/bias: has no values", [](hid_t file) {
    H5Ldelete(file, weight, H5P_DEFAULT);
    H5Dclose(H5Dcreate2(file, weight, H5T_IEEE_F32LE, H5Screate(H5S_NULL), H5P_DEFAULT,
                        plain(H5P_DATASET_CREATE), H5P_DEFAULT));
  });
}

TEST_F(HostileCheckpoint, OtherWaysToStoreValues) {
  const std::string in_pieces = "/parameters/output/bias: is stored in chunks, virtual or compact";
  refuses(in_pieces, dataset(weight, H5T_IEEE_F32LE, {7}, chunked({2})));
  refuses(in_pieces, dataset(weight, H5T_IEEE_F32LE, {hsize_t{1} << 40}, chunked({1})));
  const hid_t compact = plain(H5P_DATASET_CREATE);
  H5Pset_layout(compact, H5D_COMPACT);
  refuses(in_pieces, dataset(weight, H5T_IEEE_F32LE, {7}, compact));

  const std::string filtered = "/parameters/output/bias: is compressed or filtered";
  refuses(filtered, [](hid_t file) {  // 4 MiB of zeros in 4 KiB
    const hid_t deflate = chunked({1U << 20});
    H5Pset_deflate(deflate, 9);
    const hid_t set = replace(file, weight, H5T_IEEE_F32LE, {1U << 20}, deflate);
    const std::vector<float> zeros(1U << 20);
    EXPECT_GE(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data()), 0);
    H5Dclose(set);
  });
  const hid_t unknown = chunked({7}), shuffled = chunked({7});
  H5Pset_filter(unknown, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr);
  H5Pset_shuffle(shuffled);
  for (const hid_t creation : {unknown, shuffled})
    refuses(filtered, dataset(weight, H5T_IEEE_F32LE, {7}, creation));
}

/// Whether a file was opened or read since the object was made.
class Watched {
 public:
  explicit Watched(const std::string& path) : queue_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(queue_, path.c_str(), IN_OPEN | IN_ACCESS | IN_MODIFY), 0);
  }
  ~Watched() { ::close(queue_); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  bool touched() const {
    pollfd event{queue_, POLLIN, 0};
    return ::poll(&event, 1, 0) > 0;
  }

 private:
  int queue_;
};

TEST_F(HostileCheckpoint, NoOtherFileIsOpened) {
  const std::string other = path("other.h5"), raw = path("values");
  write_checkpoint(other, small_.checkpoint);
  spill_file(raw, std::string(28, '\1'));
  const auto refuses_unopened = [&](const std::string& why, const Change& change) {
    const std::string file = crafted(change);
    const Watched watched_other(other), watched_raw(raw);
    EXPECT_THAT(message_of<FileError>([&] { read_checkpoint(file); }),
                AllOf(StartsWith(file), HasSubstr(why)));
    EXPECT_FALSE(watched_other.touched() || watched_raw.touched()) << why;
  };
  refuses_unopened("/parameters/output: 'bias' is an external link, which is not followed", [&](hid_t file) {
    H5Ldelete(file, weight, H5P_DEFAULT);
    EXPECT_GE(H5Lcreate_external(other.c_str(), weight, file, weight, H5P_DEFAULT, H5P_DEFAULT), 0);
  });
  refuses_unopened("'parameters' is an external link", [&](hid_t file) {
    H5Ldelete(file, "parameters", H5P_DEFAULT);
    EXPECT_GE(H5Lcreate_external(other.c_str(), "parameters", file, "parameters", H5P_DEFAULT, H5P_DEFAULT),
              0);
  });
  refuses_unopened("/parameters/output/bias: has its values in another file", [&](hid_t file) {
    const hid_t external = plain(H5P_DATASET_CREATE);
    EXPECT_GE(H5Pset_external(external, raw.c_str(), 0, 28), 0);
    H5Dclose(replace(file, weight, H5T_IEEE_F32LE, {7}, external));
  });
  refuses_unopened("/parameters/output/bias: is stored in chunks, virtual", [&](hid_t file) {
    const hsize_t seven = 7;
    const hid_t space = H5Screate_simple(1, &seven, nullptr), virtual_set = plain(H5P_DATASET_CREATE);
    EXPECT_GE(H5Pset_virtual(virtual_set, space, other.c_str(), weight, space), 0);
    H5Dclose(replace(file, weight, H5T_IEEE_F32LE, {7}, virtual_set));
  });
}

TEST_F(HostileCheckpoint, LinksThatLeadNowhereOrInCircles) {
  const auto relinked = [](const char* target, const char* link) {
    return [=](hid_t file) {
      H5Ldelete(file, link, H5P_DEFAULT);
      EXPECT_GE(H5Lcreate_soft(target, file, link, H5P_DEFAULT, H5P_DEFAULT), 0);
    };
  };
  refuses("/parameters/output: 'bias' is a soft link", relinked("/parameters/output/weight", weight));
  refuses("/parameters/output: 'bias' is a soft link", relinked("/nowhere", weight));
  refuses("/: 'parameters' is a soft link", relinked("/parameters", "parameters"));
  refuses("/parameters/output: 'bias' is a user-defined link", [](hid_t file) {
    H5L_class_t kind{};
    kind.version = H5L_LINK_CLASS_T_VERS;
    kind.id = static_cast<H5L_type_t>(200);
    kind.comment = "a link of our own";
    kind.trav_func = [](const char*, hid_t, const void*, std::size_t, auto...) -> hid_t { return -1; };
    EXPECT_GE(H5Lregister(&kind), 0);
    H5Ldelete(file, weight, H5P_DEFAULT);
    EXPECT_GE(H5Lcreate_ud(file, weight, kind.id, "data", 4, H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Lunregister(kind.id);
  });
  const auto hard = [](const char* target, const char* link) {
    return
        [=](hid_t file) { EXPECT_GE(H5Lcreate_hard(file, target, file, link, H5P_DEFAULT, H5P_DEFAULT), 0); };
  };
  for (const char* target : {"/", "parameters", "parameters/output"})
    refuses("", hard(target, "parameters/output/again"));
  refuses("groups are more than 32 deep, or in a circle", [](hid_t file) {
    std::string group = "parameters";
    for (int i = 0; i < 40; ++i) make_group(file, group += "/g");
  });
}

/// The file with the address behind the link `name` replaced by that behind the link `by`.
std::string readdressed(std::string file, const std::string& name, const std::string& by) {
  const auto address_of = [&](const std::string& link) {
    return file.find(static_cast<char>(link.size()) + link) + 1 + link.size();
  };
  file.replace(address_of(name), 8, file.substr(address_of(by), 8));
  return file;
}

TEST_F(HostileCheckpoint, ObjectsUnderSeveralNames) {
  const std::string file = slurp_file(sound());
  const auto error = [&](const std::string& name, const std::string& by) {
    const std::string changed = readdressed(file, name, by);
    return message_of<FileError>([&] { parse_checkpoint(bytes_of(changed)); });
  };
  EXPECT_EQ(error("ema", "ema"), "nothing thrown");
  EXPECT_THAT(error("output", "parameters"),
              ::testing::AnyOf(HasSubstr("in a circle"), HasSubstr("shares its place in the file")));
  EXPECT_THAT(error("ema", "parameters"), HasSubstr("shares its place in the file"));
}

TEST_F(HostileCheckpoint, MissingParts) {
  for (const char* part : {"parameters", "ema", "optimizer/first_moment", "optimizer/second_moment"})
    refuses(concat("has no group /", part), [=](hid_t file) { H5Ldelete(file, part, H5P_DEFAULT); });
  for (const char* part : {"config", "vocabulary", "trainer/state", "trainer"})
    refuses("has no dataset /", [=](hid_t file) { H5Ldelete(file, part, H5P_DEFAULT); });
  for (const char* name : {"step", "epoch"})
    refuses(concat("/trainer: has no attribute '", name, "'"),
            [=](hid_t file) { H5Adelete_by_name(file, "trainer", name, H5P_DEFAULT); });
}

TEST_F(HostileCheckpoint, WrongAttributes) {
  const hid_t scalar = H5Screate(H5S_SCALAR);
  const hsize_t many = 7000;
  const hid_t list = H5Screate_simple(1, &many, nullptr), string = H5Tcopy(H5T_C_S1);
  H5Tset_size(string, H5T_VARIABLE);
  const std::string no_integer = "/trainer: attribute 'step' is not one 64-bit integer";
  for (const hid_t type :
       {H5T_STD_I64BE, H5T_STD_U64LE, H5T_STD_I32LE, H5T_IEEE_F64LE, string, H5T_STD_REF_OBJ})
    refuses(no_integer, [=](hid_t file) { set_attribute(file, "trainer", "step", type, scalar, nullptr); });
  refuses(no_integer,
          [=](hid_t file) { set_attribute(file, "trainer", "step", H5T_STD_I64LE, list, nullptr); });
  refuses("attributes in another way", [=](hid_t file) {
    for (int i = 0; i < 20; ++i)
      set_attribute(file, "trainer", concat("a", i).c_str(), H5T_STD_I64LE, scalar, nullptr);
  });
}

TEST_F(HostileCheckpoint, CommittedTypes) {
  refuses("shares HDF5 messages", [](hid_t file) {
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    EXPECT_GE(H5Tcommit2(file, "type", type, H5P_DEFAULT, plain(H5P_DATATYPE_CREATE), H5P_DEFAULT), 0);
    H5Dclose(replace(file, weight, type, {7}, early()));
    H5Tclose(type);
  });
  refuses("/type: ", [](hid_t file) {  // a type with an attribute of that type
    const hid_t type = H5Tcopy(H5T_STD_I64LE);
    EXPECT_GE(H5Tcommit2(file, "type", type, H5P_DEFAULT, plain(H5P_DATATYPE_CREATE), H5P_DEFAULT), 0);
    H5Aclose(H5Acreate2(type, "self", type, H5Screate(H5S_SCALAR), H5P_DEFAULT, H5P_DEFAULT));
    H5Tclose(type);
  });
}

TEST_F(HostileCheckpoint, NamesThatCouldDeceive) {
  const auto named = [](const std::string& name) {
    return [=](hid_t file) { make_group(file, "parameters/" + name); };
  };
  const std::string why = "/parameters: has a name in it";
  for (const std::string& name : {std::string("two\nlines"), std::string("\x1b[2J"), std::string("a b"),
                                  std::string("\xff\xfe"), std::string(5000, 'x'), std::string(250, 'x')})
    refuses(why, named(name));
}

TEST_F(HostileCheckpoint, ValuesThatCannotBe) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    refuses("/parameters/output/bias: value 3 is not finite", [=](hid_t file) {
      const hid_t set = H5Dopen2(file, weight, H5P_DEFAULT);
      std::vector<float> values(7);
      values[3] = value;
      EXPECT_GE(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      H5Dclose(set);
    });
  }
  refuses("/trainer: step -1, expected 0 to", attribute("step", -1));
  refuses("/trainer: epoch 9223372036854775807, expected 0 to",
          attribute("epoch", std::numeric_limits<std::int64_t>::max()));
  for (const char* state : {"", "[]", "{", "{\"step\": 1e400}", "{\"a\": \"\xff\"}"})
    refuses("/trainer/state: expected a JSON object", text("trainer/state", state[0] ? state : "\n"));
  refuses("/trainer/state: more than 32 levels deep",
          text("trainer/state", "{\"a\":" + std::string(50000, '[') + std::string(50000, ']') + "}"));
  refuses("/trainer/state: 2097152 bytes, expected at most 1048576",
          text("trainer/state", std::string(1 << 21, ' ').replace(0, 1, "{").replace((1 << 21) - 1, 1, "}")));
  refuses("/config: expected UTF-8", text("config", "name: \xff\n"));
}

TEST_F(HostileCheckpoint, StatesThatNoTrainingLeaves) {
  const auto state = [&](std::int64_t step, std::int64_t epoch, const std::string& more = "") {
    TrainerState trained;
    trained.step = step;
    trained.epoch = epoch;
    return text("trainer/state", trained.dump().insert(1, more));
  };
  EXPECT_EQ(read_checkpoint(crafted(state(7, 1))).step, 7);
  refuses("/trainer/state: step 100000000000000 and epoch 1, expected 7 and 1 as of /trainer",
          state(100'000'000'000'000, 1));
  refuses("/trainer/state: step 7 and epoch 2, expected 7 and 1 as of /trainer", state(7, 2));
  refuses("/trainer/state: \"step\" is there twice", state(7, 1, "\"step\":7,"));
  refuses("/trainer/state: \"a\" is there twice", state(7, 1, R"("x":[{"a":1},{"a":1,"b":{"a":2},"a":3}],)"));
  EXPECT_EQ(read_checkpoint(crafted(state(7, 1, R"("x":[{"a":1},{"a":1,"b":{"a":2}}],)"))).step, 7);
  refuses("/trainer/state: a field is missing or not of the type that training writes",
          text("trainer/state", "{\"step\":7}"));
  const float below = -std::numeric_limits<float>::denorm_min();
  Checkpoint negative;
  negative.second_moment = {{"output/bias", {1}, std::span(&below, 1)}};
  EXPECT_EQ(message_of<FileError>([&] { write_checkpoint(path("negative.h5"), negative); }),
            path("negative.h5") + ": /optimizer/second_moment/output/bias: value 0 is negative");
}

TEST_F(HostileCheckpoint, OtherKindsOfHdf5) {
  const std::string file = path("old.h5");
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(creation, checkpoint_header_size);
  H5Fclose(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT));
  H5Pclose(creation);
  std::string content = slurp_file(file);
  seal(content);
  spill_file(file, content);
  EXPECT_THAT(message_of<FileError>([&] { read_checkpoint(file); }),
              AllOf(StartsWith(file), HasSubstr("has another HDF5 superblock than polyhead writes")));
  refuses("has an HDF5 message of type", [](hid_t f) {
    const hid_t group = H5Gopen2(f, "parameters", H5P_DEFAULT);
    EXPECT_GE(H5Oset_comment(group, "comment"), 0);
    H5Gclose(group);
  });
}

TEST_F(HostileCheckpoint, ContentThatIsNoModel) {
  refuses_model("/vocabulary: stored vocabulary: ", [](Checkpoint& c) { c.vocabulary = "words"; });
  refuses_model("/vocabulary: stored vocabulary: ", [](Checkpoint& c) { c.vocabulary = ""; });
  refuses_model("parameter encoder/embedding/weight of shape [7, 4], expected [5, 4]", [](Checkpoint& c) {
    text::TokenizerConfig config;
    config.kind = "word";
    c.vocabulary = text::TextPipeline::learn(config, false, {"x"}, {"y"}).serialize();
  });
  refuses_model("/config:", [](Checkpoint& c) { c.config = "model: {heads: 3"; });
  refuses_model("/config:2: model.heads: 3 does not divide d_model 4", [](Checkpoint& c) {
    c.config = "model:\n  heads: 3\n  d_model: 4\ntraining: {max_steps: 1}\n";
  });
  // Nothing is allocated for a model that the file does not hold.
  refuses_model("no parameter encoder/layers/1/", [](Checkpoint& c) {
    c.config =
        "model: {encoder_layers: 64, decoder_layers: 64, d_model: 4, heads: 2, d_ff: 4, max_length: "
        "8}\ntraining: {max_steps: 1}";
  });
  refuses_model("parameter encoder/embedding/weight of shape [7, 4], expected [7, 8192]", [](Checkpoint& c) {
    c.config =
        "model: {encoder_layers: 1, decoder_layers: 1, d_model: 8192, heads: 2, d_ff: 65536, max_length: "
        "8}\ntraining: {max_steps: 1}";
  });
  refuses_model("model.max_length: 65536 times d_model 8192", [](Checkpoint& c) {
    c.config = "model: {d_model: 8192, max_length: 65536}\ntraining: {max_steps: 1}";
  });
  refuses_model("model.max_length: 16385 times d_model 1024, expected at most 16777216", [](Checkpoint& c) {
    c.config = "model: {d_model: 1024, max_length: 16385}\ntraining: {max_steps: 1}";
  });
  refuses_model("no parameter output/bias", [](Checkpoint& c) {
    std::erase_if(c.parameters, [](const NamedArray& array) { return array.path == "output/bias"; });
  });
  refuses_model("parameter zzz is unknown to the configured model", [](Checkpoint& c) {
    c.parameters.push_back({"zzz", {1}, c.parameters[0].values.first(1)});
  });
}

TEST_F(HostileCheckpoint, AStateBehindTheEndOfItsEpochIsNotResumedFrom) {
  const auto train_to = [&](int steps, bool resume) {
    const auto config = config::parse<Config>(
        "data: {task: copy, train_size: 50, valid_size: 5}\ntokenizer: {kind: word}\n"
        "model: {encoder_layers: 1, decoder_layers: 1, d_model: 8, heads: 2, d_ff: 8}\n"
        "training: {batch_tokens: 64, lanes: 1, validate_every: 1000}\n",
        "test", std::vector<std::string>{concat("training.max_steps=", steps)});
    Observer quiet;
    train(config,
          {.folder = path("run"), .threads = 1, .resume = resume, .stop_requested = [] { return false; }},
          quiet);
  };
  train_to(2, false);
  const std::string file = list_checkpoints(path("run/checkpoints")).back().path;
  Checkpoint checkpoint = read_checkpoint(file);
  auto state = nlohmann::json::parse(checkpoint.state);
  state["batch"] = 1'000'000;
  checkpoint.state = state.dump();
  write_checkpoint(file, checkpoint);
  EXPECT_THAT(message_of<FileError>([&] { train_to(4, true); }),
              HasSubstr("has made 1000000 updates of an epoch that has "));
}

TEST_F(HostileCheckpoint, TakesMemoryInProportionToItsSize) {
  // The smallest datasets under the longest names.
  const std::string file = crafted([](hid_t f) {
    const std::string group = "ema/" + std::string(240, 'n') + "/";
    make_group(f, group);
    for (int i = 0; i < 800; ++i)
      H5Dclose(
          replace(f, (group + std::to_string(i)).c_str(), H5T_IEEE_F32LE, {0}, plain(H5P_DATASET_CREATE)));
  });
  const std::int64_t before = peak_resident_bytes();
  const Checkpoint checkpoint = read_checkpoint(file);
  EXPECT_EQ(checkpoint.ema.size(), 800U);
  EXPECT_LE(peak_resident_bytes() - before,
            16 * static_cast<std::int64_t>(fs::file_size(file)) + (std::int64_t{64} << 20));
}

TEST_F(HostileCheckpoint, AFileLargerThanMemoryIsNotRead) {
  spill_file(path("sparse.h5"), "polyhead checkpoint\n");
  std::error_code error;
  fs::resize_file(path("sparse.h5"), std::uintmax_t{1} << 42, error);
  if (error) GTEST_SKIP() << "no sparse files here";
  EXPECT_THAT(message_of<FileError>([&] { read_checkpoint(path("sparse.h5")); }),
              AllOf(StartsWith(path("sparse.h5")), HasSubstr("of memory that can be had")));
}

}  // namespace
}  // namespace polyhead::train::hostile
