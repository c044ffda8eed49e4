#pragma once

#include <vector>

#include "train/hdf5_bytes.h"

namespace polyhead::hdf5 {

/// The link messages of a group that has too many for its header (HDF5 file format specification 3.0, III.A.2 and III.G):
/// they lie in the fractal heap at `heap`, and the version 2 B-tree at `index` tells where. Trees of more than two levels,
/// some thousand links, and heaps of more than one level of blocks are refused. Throws FileError.
std::vector<Bytes> dense_links(Pieces& file, std::uint64_t heap, std::uint64_t index);

}  // namespace polyhead::hdf5
