#pragma once

#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "polyhead/core/error.h"
#include "polyhead/tensor/arena.h"

/// Reference values that were computed elsewhere (PyTorch) and stored as HDF5.
namespace polyhead::testing {

/// A dataset of any numeric type, row-major.
struct GoldenArray {
  std::vector<std::int64_t> shape;  ///< empty for a scalar
  std::vector<double> values;
};

/// Reads the datasets and attributes of one HDF5 file. Names are paths without a leading slash, such as
/// "gradients/weight". Throws FileError, with the file and the name, for whatever is missing or of another
/// type.
class Golden {
 public:
  /// `file` relative to the folder of test data.
  explicit Golden(const std::string& file) : path_(std::string(POLYHEAD_TEST_DATA) + "/" + file) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    file_ = Handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    check(file_.id >= 0, "cannot be opened as HDF5");
  }

  bool has(const std::string& name) const {
    const std::vector<std::string> all = datasets();
    return std::find(all.begin(), all.end(), name) != all.end();
  }

  /// The paths of all datasets below `group` (the whole file when empty) in alphabetical order.
  std::vector<std::string> datasets(const std::string& group = "") const {
    std::vector<std::string> names;
    check(H5Ovisit2(file_.id, H5_INDEX_NAME, H5_ITER_INC, collect, &names, H5O_INFO_BASIC) >= 0,
          "cannot be listed");
    std::erase_if(names,
                  [&](const std::string& name) { return !group.empty() && !name.starts_with(group + "/"); });
    return names;
  }

  GoldenArray array(const std::string& name) const {
    const Handle dataset(H5Dopen2(file_.id, name.c_str(), H5P_DEFAULT), H5Dclose);
    check(dataset.id >= 0, "has no dataset '", name, "'");
    const Handle space(H5Dget_space(dataset.id), H5Sclose);
    std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id))));
    H5Sget_simple_extent_dims(space.id, extents.data(), nullptr);
    GoldenArray result{{extents.begin(), extents.end()}, {}};
    result.values.resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.id)));
    check(H5Dread(dataset.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.values.data()) >= 0,
          "'", name, "' is not numeric");
    return result;
  }

  std::vector<double> values(const std::string& name) const { return array(name).values; }

  /// The dataset as a tensor of `dtype`, of rank at most 4.
  Tensor tensor(Arena& arena, const std::string& name, DType dtype) const {
    const GoldenArray source = array(name);
    const Tensor t = arena.tensor(Shape(source.shape), dtype);
    const auto fill = [&]<class T>(T* to) {
      std::transform(source.values.begin(), source.values.end(), to,
                     [](double x) { return static_cast<T>(x); });
    };
    if (dtype == DType::i32) {
      fill(t.as<std::int32_t>());
    } else {
      dispatch(dtype, [&]<class T>() { fill(t.as<T>()); });
    }
    return t;
  }

  /// A numeric attribute of the dataset or group `owner` ("/" is the file itself).
  double number(const std::string& owner, const std::string& name) const {
    const Handle attribute = open_attribute(owner, name);
    double value = 0;
    const Handle space(H5Aget_space(attribute.id), H5Sclose);
    check(
        H5Sget_simple_extent_npoints(space.id) == 1 && H5Aread(attribute.id, H5T_NATIVE_DOUBLE, &value) >= 0,
        "attribute '", name, "' of '", owner, "' is not a number");
    return value;
  }

  /// A text attribute, as h5py writes a str.
  std::string text(const std::string& owner, const std::string& name) const {
    const Handle attribute = open_attribute(owner, name);
    const Handle type(H5Aget_type(attribute.id), H5Tclose);
    char* value = nullptr;
    check(H5Tis_variable_str(type.id) > 0 && H5Aread(attribute.id, type.id, &value) >= 0 && value != nullptr,
          "attribute '", name, "' of '", owner, "' is not a string");
    std::string result = value;
    H5free_memory(value);
    return result;
  }

 private:
  struct Handle {
    Handle() = default;
    Handle(hid_t object, herr_t (*closer)(hid_t)) : id(object), close(closer) {}
    Handle(Handle&& other) noexcept : id(std::exchange(other.id, -1)), close(other.close) {}
    Handle& operator=(Handle&& other) noexcept {
      std::swap(id, other.id);
      std::swap(close, other.close);
      return *this;
    }
    ~Handle() {
      if (id >= 0) close(id);
    }
    hid_t id = -1;
    herr_t (*close)(hid_t) = nullptr;
  };

  static herr_t collect(hid_t, const char* name, const H5O_info_t* info, void* names) {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(names)->push_back(name);
    return 0;
  }

  Handle open_attribute(const std::string& owner, const std::string& name) const {
    Handle attribute(H5Aopen_by_name(file_.id, owner.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                     H5Aclose);
    check(attribute.id >= 0, "has no attribute '", name, "' of '", owner, "'");
    return attribute;
  }

  template <class... Parts>
  void check(bool condition, const Parts&... parts) const {
    require<FileError>(condition, path_, ": ", parts...);
  }

  std::string path_;
  Handle file_;
};

}  // namespace polyhead::testing
