#include "polyhead/train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include "polyhead/core/rng.h"
#include "support/surroundings.h"
#include "train/digest.h"

namespace polyhead::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    std::string name = (fs::temp_directory_path() / "polyhead-checkpoint-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::iota(weight_.begin(), weight_.end(), -2.5F);
    weight_[3] = std::numeric_limits<float>::denorm_min();
    weight_[4] = -0.0F;
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  Checkpoint example() const {
    Checkpoint c;
    c.parameters = {{"encoder/layers/0/self_attention/query/weight", {2, 3}, weight_},
                    {"decoder/layers/0/cross_attention/query/bias", {2}, bias_},
                    {"encoder/layers/0/self_attention/no_heads/weight", {0, 3}, {}}};
    c.ema = {{"encoder/layers/0/self_attention/query/weight", {3, 2}, weight_}};
    c.first_moment = {{"output/bias", {2}, bias_}};
    c.second_moment = {{"output/bias", {1, 2, 1}, squares_}, {"scale", {}, std::span(squares_).first(1)}};
    c.step = 40;
    c.epoch = 3;
    c.state = R"({"best": {"bleu": 41.02}, "patience": 2})";
    c.config = "name: Übung — 試験 🙂\nseed: 1\n";
    c.vocabulary = std::string("\0\xff the\n\0", 8);
    return c;
  }

  std::string write_example(const std::string& name) const {
    write_checkpoint(path(name), example());
    return path(name);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder_))
      result.push_back(entry.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }

  std::string folder_;
  std::vector<float> weight_ = std::vector<float>(6), bias_ = {0.25F, -1e30F}, squares_ = {0.25F, 1e30F};
};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The message of the FileError that `action` throws; empty when it throws none.
template <class Action>
std::string file_error(const Action& action) {
  try {
    action();
  } catch (const FileError& error) {
    EXPECT_EQ(error.status(), Status::file);
    return error.what();
  }
  return "";
}
std::string read_error(const std::string& path) {
  return file_error([&] { read_checkpoint(path); });
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

void expect_equal(std::span<const NamedArray> read, std::span<const NamedArray> written) {
  ASSERT_EQ(read.size(), written.size());
  for (const NamedArray& expected : written) {
    const NamedArray* array = find(read, expected.path);
    ASSERT_NE(array, nullptr) << expected.path;
    EXPECT_EQ(array->shape, expected.shape) << expected.path;
    ASSERT_EQ(array->values.size(), expected.values.size());
    // Bits: −0 is not 0.
    EXPECT_TRUE(std::equal(array->values.begin(), array->values.end(), expected.values.begin(), same_bits))
        << expected.path;
  }
}

TEST(Digest, IsSha256) {
  const std::string abc = "abc";  // the examples of FIPS 180-4
  EXPECT_EQ(sha256(std::as_bytes(std::span(abc))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_F(CheckpointTest, ReadsWhatWasWritten) {
  const Checkpoint written = example(), read = read_checkpoint(write_example("a.h5"));
  expect_equal(read.parameters, written.parameters);
  expect_equal(read.ema, written.ema);
  expect_equal(read.first_moment, written.first_moment);
  expect_equal(read.second_moment, written.second_moment);
  EXPECT_EQ(read.step, 40);
  EXPECT_EQ(read.epoch, 3);
  EXPECT_EQ(read.state, written.state);
  EXPECT_EQ(read.config, written.config);
  EXPECT_EQ(read.vocabulary, written.vocabulary);
  EXPECT_TRUE(std::is_sorted(read.parameters.begin(), read.parameters.end(),
                             [](const auto& a, const auto& b) { return a.path < b.path; }));
  EXPECT_EQ(find(read.parameters, "encoder"), nullptr);
  EXPECT_THAT(names(), ElementsAre("a.h5"));
}

TEST_F(CheckpointTest, SurvivesEmptyContentAndManyArrays) {
  write_checkpoint(path("empty.h5"), Checkpoint{});
  const Checkpoint empty = read_checkpoint(path("empty.h5"));
  EXPECT_TRUE(empty.parameters.empty() && empty.ema.empty() && empty.first_moment.empty());
  EXPECT_EQ(empty.state, "{}");
  EXPECT_EQ(empty.config, "");
  EXPECT_EQ(empty.vocabulary, "");

  std::vector<float> values(300 * 1000);
  RandomStream random(RngKey{3});
  for (float& value : values) value = static_cast<float>(random.uniform());
  Checkpoint many;
  for (std::size_t i = 0; i < 300; ++i)
    many.parameters.push_back(
        {concat("layers/", i, "/weight"), {10, 100}, std::span(values).subspan(1000 * i, 1000)});
  many.vocabulary = std::string(1 << 20, 'v');
  write_checkpoint(path("many.h5"), many);
  const Checkpoint read = read_checkpoint(path("many.h5"));
  expect_equal(read.parameters, many.parameters);
  EXPECT_EQ(read.vocabulary, many.vocabulary);
}

TEST_F(CheckpointTest, EqualContentIsEqualBytes) {
  const std::string first = slurp(write_example("a.h5"));
  // Memory that was used before, and another order of the arrays, must leave no trace.
  std::vector<std::string> dirt(100, std::string(50000, 'x'));
  dirt.clear();
  Checkpoint reversed = example();
  std::reverse(reversed.parameters.begin(), reversed.parameters.end());
  write_checkpoint(path("b.h5"), reversed);
  EXPECT_EQ(slurp(path("b.h5")), first);
  // What was read writes the same file again.
  write_checkpoint(path("c.h5"), read_checkpoint(path("a.h5")));
  EXPECT_EQ(slurp(path("c.h5")), first);

  const hid_t file = H5Fopen(path("a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const auto no_times = [](hid_t, const char* name, const H5O_info_t* info, void*) -> herr_t {
    EXPECT_EQ(info->atime + info->btime + info->ctime + info->mtime, 0) << name;
    return 0;
  };
  EXPECT_EQ(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, no_times, nullptr, H5O_INFO_TIME), 0);
  H5Fclose(file);
}

TEST_F(CheckpointTest, OpensAsPlainHdf5) {
  const hid_t file = H5Fopen(write_example("a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const hid_t creation = H5Fget_create_plist(file);
  hsize_t user_block = 0;
  H5Pget_userblock(creation, &user_block);
  EXPECT_EQ(user_block, 512U);
  const hid_t set = H5Dopen2(file, "/parameters/encoder/layers/0/self_attention/query/weight", H5P_DEFAULT);
  ASSERT_GE(set, 0);
  const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
  hsize_t extents[2] = {};
  ASSERT_EQ(H5Sget_simple_extent_dims(space, extents, nullptr), 2);
  EXPECT_THAT(extents, ElementsAre(2, 3));
  EXPECT_GT(H5Tequal(type, H5T_IEEE_F32LE), 0);
  std::vector<float> values(6);
  EXPECT_GE(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  EXPECT_EQ(values, weight_);
  const hid_t attribute = H5Aopen_by_name(file, "/trainer", "step", H5P_DEFAULT, H5P_DEFAULT);
  std::int64_t step = 0;
  EXPECT_GE(H5Aread(attribute, H5T_NATIVE_INT64, &step), 0);
  EXPECT_EQ(step, 40);
  H5Aclose(attribute);
  H5Tclose(type);
  H5Sclose(space);
  H5Dclose(set);
  H5Pclose(creation);
  H5Fclose(file);
  EXPECT_THAT(slurp(path("a.h5")), StartsWith("polyhead checkpoint\nversion 1\nlength "));
}

TEST_F(CheckpointTest, RefusesEveryAlteredByte) {
  const std::string good = slurp(write_example("a.h5"));
  std::fstream file(path("a.h5"), std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t i, int value) {
    file.seekp(static_cast<std::streamoff>(i)).put(static_cast<char>(value)).flush();
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    put(i, good[i] ^ (1 << (i % 8)));
    const std::string message = read_error(path("a.h5"));
    ASSERT_THAT(message, StartsWith(path("a.h5") + ": ")) << "byte " << i;
    ASSERT_THAT(message, HasSubstr(i < 512 ? "" : "is damaged")) << "byte " << i;
    put(i, good[i]);
  }
  EXPECT_EQ(read_error(path("a.h5")), "");
  EXPECT_GT(good.size(), 2000U);
}

TEST_F(CheckpointTest, RefusesEveryTruncation) {
  const std::string good = slurp(write_example("a.h5"));
  spill(path("bad.h5"), good);
  for (std::size_t size = good.size() - 1; size > 0; --size) {
    fs::resize_file(path("bad.h5"), size);
    ASSERT_THAT(read_error(path("bad.h5")), AllOf(StartsWith(path("bad.h5")), HasSubstr("is truncated")))
        << size;
  }
  spill(path("bad.h5"), good + "ab");
  EXPECT_THAT(read_error(path("bad.h5")), HasSubstr("has 2 bytes too many"));
}

TEST_F(CheckpointTest, SaysWhatIsNoCheckpoint) {
  EXPECT_EQ(read_error(path("none.h5")), path("none.h5") + ": cannot read: No such file or directory");
  EXPECT_EQ(read_error(folder_), folder_ + ": cannot read: Is a directory");
  spill(path("empty.h5"), "");
  EXPECT_EQ(read_error(path("empty.h5")), path("empty.h5") + ": is empty, expected a checkpoint");
  spill(path("text.h5"), "seed: 1\n");
  EXPECT_THAT(read_error(path("text.h5")), HasSubstr("is not a polyhead checkpoint"));
  ASSERT_EQ(::mkfifo(path("pipe.h5").c_str(), 0600), 0);
  EXPECT_EQ(read_error(path("pipe.h5")), path("pipe.h5") + ": not a regular file");

  std::string other = slurp(write_example("a.h5"));
  other[other.find("version 1") + 8] = '7';
  spill(path("new.h5"), other);
  EXPECT_EQ(read_error(path("new.h5")), path("new.h5") + ": has format version 7, expected 1");

  const hid_t file = H5Fcreate(path("plain.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(read_error(path("plain.h5")), HasSubstr("is not a polyhead checkpoint"));
}

TEST_F(CheckpointTest, RefusesContentOfAnotherLayout) {
  // A header that is right over content that is not.
  const std::string content = "no HDF5 at all";
  std::string file = concat("polyhead checkpoint\nversion 1\nlength ", content.size(), "\nsha256 ",
                            sha256(std::as_bytes(std::span(content))), "\n");
  file.resize(512);
  spill(path("a.h5"), file + content);
  EXPECT_EQ(read_error(path("a.h5")), path("a.h5") + ": holds no HDF5");
}

TEST_F(CheckpointTest, RefusesContentThatCannotBeStored) {
  const auto error_of = [&](const std::string& name, const Shape& shape) {
    Checkpoint c = example();
    c.parameters.push_back({name, shape, bias_});
    return file_error([&] { write_checkpoint(path("a.h5"), c); });
  };
  EXPECT_THAT(error_of("w", {3}), HasSubstr("'parameters/w' has 2 values, expected 3 for shape [3]"));
  EXPECT_THAT(error_of("decoder/layers/0/cross_attention/query/bias", {2}),
              HasSubstr("is the path used twice?"));
  EXPECT_THAT(error_of("decoder/layers", {2}),
              HasSubstr("cannot make group 'parameters/decoder/layers' (is it a dataset too?)"));
  for (const char* name : {"", "a//b", "/a", "a/", ".", "a/./b"})
    EXPECT_THAT(error_of(name, {2}), AllOf(StartsWith(path("a.h5: ")), HasSubstr("cannot be the path")))
        << name;
  EXPECT_TRUE(names().empty());
}

TEST_F(CheckpointTest, FailedWritesLeaveNothingBehind) {
  const auto write_error = [&](const std::string& to) {
    return file_error([&] { write_checkpoint(to, example()); });
  };
  EXPECT_EQ(write_error(path("no/a.h5")), path("no/a.h5") + ": cannot write: No such file or directory");
  fs::create_directory(path("folder.h5"));
  EXPECT_EQ(write_error(path("folder.h5")), path("folder.h5") + ": cannot replace: Is a directory");
  spill(path("file"), "x");
  EXPECT_EQ(write_error(path("file/a.h5")), path("file/a.h5") + ": cannot write: Not a directory");
  EXPECT_THAT(names(), ElementsAre("file", "folder.h5"));
  fs::create_directory(path("locked"));
  fs::permissions(path("locked"), fs::perms::owner_read | fs::perms::owner_exec);
  testing::with_permissions([&] {
    EXPECT_EQ(write_error(path("locked/a.h5")), path("locked/a.h5") + ": cannot write: Permission denied");
  });
}

TEST_F(CheckpointTest, AFullDiskLeavesTheOldFile) {
  const std::string old = slurp(write_example("a.h5"));
  Checkpoint larger = example();
  larger.config = std::string(100000, 'c');
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{5000, limit.rlim_max};
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = file_error([&] { write_checkpoint(path("a.h5"), larger); });
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, path("a.h5") + ": cannot write: File too large");
  EXPECT_EQ(slurp(path("a.h5")), old);
  EXPECT_THAT(names(), ElementsAre("a.h5"));
}

TEST_F(CheckpointTest, OverwritesTheLeftoverOfADeadProcess) {
  spill(path("a.h5.tmp-polyhead"), std::string(100000, 'x'));
  EXPECT_EQ(read_checkpoint(write_example("a.h5")).step, 40);
  EXPECT_THAT(names(), ElementsAre("a.h5"));
}

TEST_F(CheckpointTest, FindsTheLatestThatCanBeRead) {
  EXPECT_EQ(checkpoint_path("run/checkpoints", 40), "run/checkpoints/step-00000040.h5");
  EXPECT_EQ(checkpoint_path("run", 1234567890), "run/step-1234567890.h5");
  EXPECT_TRUE(list_checkpoints(path("none")).empty());
  EXPECT_EQ(latest_valid_checkpoint(path("none")).path, "");

  for (const std::int64_t step : {100, 20, 123456789, 40}) {
    Checkpoint checkpoint = example();
    checkpoint.step = step;
    write_checkpoint(checkpoint_path(folder_, step), checkpoint);
  }
  for (const char* name :
       {"step-7.h5", "step-00000007.h5.tmp-1", "step-0000000x.h5", "best.h5", "step--0000001.h5"})
    spill(path(name), "other");
  std::vector<std::int64_t> steps;
  for (const CheckpointFile& file : list_checkpoints(folder_)) {
    steps.push_back(file.step);
    EXPECT_EQ(file.path, checkpoint_path(folder_, file.step));
  }
  EXPECT_THAT(steps, ElementsAre(20, 40, 100, 123456789));
  EXPECT_EQ(latest_valid_checkpoint(folder_).path, path("step-123456789.h5"));

  fs::resize_file(path("step-123456789.h5"), 700);
  spill(path("step-00000100.h5"), "");
  const LatestCheckpoint latest = latest_valid_checkpoint(folder_ + "/");
  EXPECT_EQ(latest.path, path("/step-00000040.h5").replace(folder_.size(), 2, "/"));
  ASSERT_TRUE(latest.checkpoint.has_value());
  expect_equal(latest.checkpoint->parameters, example().parameters);
  EXPECT_THAT(latest.skipped, ElementsAre(HasSubstr("step-123456789.h5: is truncated"),
                                          HasSubstr("step-00000100.h5: is empty")));
  spill(path("file"), "");
  EXPECT_EQ(file_error([&] { list_checkpoints(path("file")); }),
            path("file") + ": cannot list: Not a directory");
}

TEST_F(CheckpointTest, PassesOverWhatIsDamagedAndNothingElse) {
  write_checkpoint(checkpoint_path(folder_, 40), example());
  const std::string newest = checkpoint_path(folder_, 50), whole = slurp(checkpoint_path(folder_, 40));
  const auto message = [&] { return file_error([&] { latest_valid_checkpoint(folder_); }); };
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string changed = whole;
    changed.replace(changed.find(before), before.size(), after);
    spill(newest, changed);
    return message();
  };
  for (const std::string& damaged : {std::string(), std::string("text"), whole.substr(0, 100),
                                     whole.substr(0, whole.size() - 1), whole + "x"}) {
    spill(newest, damaged);
    EXPECT_EQ(message(), "") << damaged.size();
  }
  EXPECT_EQ(with("version 1", "version x"), "");
  EXPECT_EQ(with("sha256 ", "sha512 "), "");
  EXPECT_EQ(with("polyhead checkpoint", "polyhead checkpoimt"), "");
  EXPECT_EQ(with("version 1", "version 2"), newest + ": has format version 2, expected 1");
  EXPECT_EQ(with("version 1", "version 10"), newest + ": has format version 10, expected 1");
  spill(newest, whole);
  EXPECT_EQ(message(), newest + ": is of step 40, expected 50 as its name says");
  fs::remove(newest);
  fs::create_directory(newest);
  EXPECT_EQ(message(), newest + ": cannot read: Is a directory");
  fs::remove(newest);
  ASSERT_EQ(::mkfifo(newest.c_str(), 0600), 0);
  EXPECT_EQ(message(), newest + ": not a regular file");
  fs::remove(newest);
  fs::create_symlink("none", newest);
  EXPECT_EQ(message(), newest + ": cannot read: No such file or directory");
}

TEST_F(CheckpointTest, IsNotWrittenWhereItsWriterForbidsItAtLast) {
  const auto forbid = [&] {
    EXPECT_TRUE(names().empty());
    throw FileError("no");
  };
  EXPECT_EQ(file_error([&] { write_checkpoint(path("a.h5"), example(), forbid); }), "no");
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace polyhead::train
