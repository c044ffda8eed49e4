#include "train/hdf5.h"

#include <array>

#include "polyhead/core/error.h"

namespace polyhead::hdf5 {
namespace {

void check(herr_t status, std::string_view action, std::string_view path) {
  require<FileError>(status >= 0, "HDF5 cannot ", action, " '", path, "'");
}

/// A property list that omits times, so that equal content is equal bytes.
Handle timeless(hid_t kind) {
  Handle list(H5Pcreate(kind), H5Pclose, "make a property list");
  check(H5Pset_obj_track_times(list, false), "set", "track_times");
  return list;
}

/// Access to a file in memory that grows by `increment` bytes and is never stored.
Handle memory_access(std::size_t increment) {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make a property list");
  check(H5Pset_fapl_core(access, increment, false), "set", "fapl_core");
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "set", "libver_bounds");
  return access;
}

/// HDF5 takes files in memory of equal name for one file, and refuses names that exist on disk.
std::string unique_name(const void* owner) { return concat("/dev/null/", owner); }

Handle create(const void* owner, std::size_t user_block, std::size_t expected_bytes) {
  const Handle creation = timeless(H5P_FILE_CREATE);
  check(H5Pset_userblock(creation, user_block), "set", "userblock");
  const Handle access = memory_access(user_block + expected_bytes);
  return {H5Fcreate(unique_name(owner).c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose,
          "make a file in memory"};
}

/// "a//b" would be read back as "a/b", "." as the group itself.
void check_path(const std::string& path) {
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = path.find('/', begin);
    const std::string part = path.substr(begin, end == std::string::npos ? end : end - begin);
    require<FileError>(!part.empty() && part != "." && part.find('\0') == std::string::npos,  //
                       "'", path,
                       "' cannot be the path of a dataset, expected names separated by single slashes");
  }
}

}  // namespace

Handle::Handle(hid_t id, herr_t (*close)(hid_t), std::string_view action) : id_(id), close_(close) {
  require<FileError>(id >= 0, "HDF5 cannot ", action);
}

Silence::Silence() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
Silence::~Silence() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

Writer::Writer(std::size_t user_block, std::size_t expected_bytes)
    : user_block_(user_block), file_(create(this, user_block, expected_bytes)) {}

void Writer::group(const std::string& path) {
  // One by one: groups that HDF5 makes on the way to a dataset would carry times.
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (!groups_.insert(part).second) continue;
    Handle(H5Gcreate2(file_, part.c_str(), H5P_DEFAULT, timeless(H5P_GROUP_CREATE), H5P_DEFAULT), H5Gclose,
           "make group '" + part + "' (is it a dataset too?)");
  }
}

void Writer::dataset(const std::string& path, hid_t file_type, hid_t memory_type, const Handle& space,
                     const void* data) {
  check_path(path);
  if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) group(path.substr(0, slash));
  const Handle creation = timeless(H5P_DATASET_CREATE);
  check(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), "set", "fill_time");
  const Handle set(H5Dcreate2(file_, path.c_str(), file_type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
                   H5Dclose, "make dataset '" + path + "' (is the path used twice?)");
  check(H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "write", path);
}

void Writer::floats(const std::string& path, const Shape& shape, std::span<const float> values) {
  require<FileError>(shape.size() == static_cast<std::int64_t>(values.size()), "'", path, "' has ",
                     values.size(), " values, expected ", shape.size(), " for shape ", shape);
  std::array<hsize_t, Shape::max_rank> extents{};
  for (int i = 0; i < shape.rank(); ++i)
    extents[static_cast<std::size_t>(i)] = static_cast<hsize_t>(shape[i]);
  // A simple space of rank 0 is a scalar.
  const Handle space(H5Screate_simple(shape.rank(), extents.data(), nullptr), H5Sclose, "make a data space");
  dataset(path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, space, values.data());
}

void Writer::bytes(const std::string& path, std::string_view values) {
  const hsize_t extent = values.size();
  const Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose, "make a data space");
  dataset(path, H5T_STD_U8LE, H5T_NATIVE_UCHAR, space, values.data());
}

void Writer::text(const std::string& path, std::string_view value) {
  const std::string padded = value.empty() ? std::string(1, '\0') : std::string(value);  // no type has size 0
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "make a string type");
  check(H5Tset_size(type, padded.size()), "store the text of", path);
  check(H5Tset_strpad(type, H5T_STR_NULLPAD), "store the text of", path);
  check(H5Tset_cset(type, H5T_CSET_UTF8), "store the text of", path);
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a data space");
  dataset(path, type, type, space, padded.data());
}

void Writer::attribute(const std::string& group, const char* name, std::int64_t value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a data space");
  const Handle attribute(H5Acreate_by_name(file_, group.c_str(), name, H5T_STD_I64LE, space, H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose, concat("make attribute '", name, "'"));
  check(H5Awrite(attribute, H5T_NATIVE_INT64, &value), "write", name);
}

std::span<std::byte> Writer::image() {
  check(H5Fflush(file_, H5F_SCOPE_GLOBAL), "flush", "memory");
  const ssize_t size = H5Fget_file_image(file_, nullptr, 0);  // without the user block
  void* memory = nullptr;
  require<FileError>(size > 0 && H5Fget_vfd_handle(file_, H5P_DEFAULT, &memory) >= 0,
                     "HDF5 cannot give its file in memory");
  return {*static_cast<std::byte**>(memory), user_block_ + static_cast<std::size_t>(size)};
}

}  // namespace polyhead::hdf5
