#include "train/hdf5_links.h"

namespace polyhead::hdf5 {
namespace {

constexpr std::size_t heap_id_size = 7, record_size = 4 + heap_id_size, node_size = 512;

class FractalHeap {
 public:
  FractalHeap(Pieces& file, std::uint64_t address) : file_(file) {
    constexpr std::size_t statistics = 12 * 8;
    Cursor header(file.claim(address, 146));
    header.expect("FRHP", 0);
    const std::uint64_t id_size = header.number(2), filters = header.number(2);
    header.take(1 + 4 + statistics);
    width_ = header.number(2);
    start_ = header.number(8);
    largest_ = header.number(8);
    const std::uint64_t bits = header.number(2);
    header.take(2);
    root_ = header.number(8);
    rows_ = header.number(2);
    require<FileError>(id_size == heap_id_size && filters == 0 && bits == 32 && width_ > 0 && width_ <= 64 &&
                           start_ > 0 && start_ <= 65536 && rows_ <= 16,
                       "keeps its links in another way than polyhead");
    if (rows_ == 0) return;
    const std::uint64_t children = rows_ * width_ * 8;
    Cursor block(file.claim(root_, 17 + children));
    block.expect("FHIB", 0);
    block.take(8 + 4);
    children_ = block.take(children);
  }

  Bytes object(Cursor id) const {
    const std::uint64_t kind = id.number(1), offset = id.number(4), size = id.number(2);
    require<FileError>(kind == 0, "keeps its links in another way than polyhead");
    if (rows_ == 0) return inside(root_, start_, offset, size);
    // Blocks of the first two rows have the starting size, those of every further row twice that of the row before.
    std::uint64_t begin = 0, block = start_;
    for (std::uint64_t row = 0; row < rows_ && block <= largest_; ++row) {
      const std::uint64_t column = (offset - begin) / block;
      if (column < width_) {
        const auto child = static_cast<std::size_t>((row * width_ + column) * 8);
        return inside(Cursor(children_.subspan(child)).number(8), block, offset - begin - column * block,
                      size);
      }
      begin += width_ * block;
      if (row > 0) block *= 2;
    }
    throw FileError("a link lies outside of its heap");
  }

 private:
  Bytes inside(std::uint64_t address, std::uint64_t block, std::uint64_t offset, std::uint64_t size) const {
    require<FileError>(address != undefined && offset <= block && size <= block - offset,
                       "a link lies outside of its heap");
    return file_.claim(address + offset, size);
  }

  Pieces& file_;
  std::uint64_t width_ = 0, start_ = 0, largest_ = 0, root_ = 0, rows_ = 0;
  Bytes children_;
};

/// Calls action(heap id) for each record of a node and of those below it.
template <class Action>
void each_record(Pieces& file, std::uint64_t address, std::uint64_t records, std::uint64_t depth,
                 const Action& action) {
  const std::uint64_t children = depth == 0 ? 0 : records + 1;
  Cursor node(file.claim(address, 6 + records * record_size + children * 9));
  node.expect(depth == 0 ? "BTLF" : "BTIN", 0);
  node.take(1);
  for (std::uint64_t i = 0; i < records; ++i) {
    node.take(4);
    action(Cursor(node.take(heap_id_size)));
  }
  for (std::uint64_t i = 0; i < children; ++i) {
    const std::uint64_t child = node.number(8), count = node.number(1);
    each_record(file, child, count, depth - 1, action);
  }
}

}  // namespace

std::vector<Bytes> dense_links(Pieces& file, std::uint64_t heap, std::uint64_t index) {
  const FractalHeap links(file, heap);
  Cursor header(file.claim(index, 38));
  header.expect("BTHD", 0);
  const std::uint64_t type = header.number(1), node = header.number(4), record = header.number(2),
                      depth = header.number(2);
  header.take(2);
  const std::uint64_t root = header.number(8), records = header.number(2);
  require<FileError>(type == 5 && node == node_size && record == record_size && depth <= 1,
                     "indexes its links in another way than polyhead");
  std::vector<Bytes> found;
  each_record(file, root, records, depth, [&](Cursor id) { found.push_back(links.object(id)); });
  return found;
}

}  // namespace polyhead::hdf5
