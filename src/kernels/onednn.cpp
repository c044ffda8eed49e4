#ifdef POLYHEAD_ONEDNN

#include "onednn.h"

#include <dnnl.hpp>

#include <array>
#include <initializer_list>
#include <mutex>
#include <unordered_map>

#include "polyhead/core/memory.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::kernels::onednn {
namespace {

struct Hash {
  std::size_t operator()(const Problem& p) const {
    std::uint64_t h = 0;
    for (const std::int64_t x : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc})
      h = (h ^ static_cast<std::uint64_t>(x)) * 0x9E3779B97F4A7C15ULL;
    return h ^ (h >> 32) ^
           static_cast<std::uint64_t>(p.a_transposed + 2 * p.b_transposed + 4 * p.accumulate + 8 * p.bf16);
  }
};

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t cols, std::int64_t ld, bool transposed, bool bf16) {
  // oneDNN's cache of primitives holds two descriptions for equal that differ in the stride of an extent of 1 only, but
  // chooses the code, and so the bits, by that stride: what came first would decide.
  if ((transposed ? cols : rows) == 1) ld = transposed ? rows : cols;
  return {{rows, cols},
          bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32,
          transposed ? dnnl::memory::dims{1, ld} : dnnl::memory::dims{ld, 1}};
}

dnnl::matmul::primitive_desc describe(const Problem& p) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (p.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc operation(matrix(p.m, p.k, p.lda, p.a_transposed, p.bf16),
                                     matrix(p.k, p.n, p.ldb, p.b_transposed, p.bf16),
                                     matrix(p.m, p.n, p.ldc, false, false));
  return {operation, attributes, engine()};
}

/// A primitive and the memory objects through which it is given its operands.
struct Matmul {
  explicit Matmul(const Problem& p) : Matmul(describe(p)) {}
  explicit Matmul(const dnnl::matmul::primitive_desc& description)
      : primitive(description),
        a(description.src_desc(), engine(), DNNL_MEMORY_NONE),
        b(description.weights_desc(), engine(), DNNL_MEMORY_NONE),
        c(description.dst_desc(), engine(), DNNL_MEMORY_NONE),
        scratchpad(description.scratchpad_desc(), engine(), DNNL_MEMORY_NONE),
        scratchpad_size(description.scratchpad_desc().get_size()) {}

  dnnl::matmul primitive;
  dnnl::memory a, b, c, scratchpad;
  std::size_t scratchpad_size;
};

/// More than the code of a primitive takes: 256 KiB of address space a kernel.
constexpr std::size_t room_of_primitive = std::size_t{16} << 20;

using Table = std::unordered_map<Problem, Matmul, Hash>;

Matmul& prepared(Table& table, const Problem& problem, std::span<const std::int64_t> extents) {
  const auto found = table.find(problem);
  if (found != table.end()) return found->second;
  // oneDNN writes code where it wants memory for it, without a look at what it got.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  for (const std::int64_t extent : extents) {
    // With both transposed, k is an extent of B's rows.
    if (problem.a_transposed && problem.b_transposed && extent > problem.ldb) continue;
    Problem kin = problem;
    (problem.a_transposed ? kin.k : kin.m) = extent;
    require_room(room_of_primitive);
    table.try_emplace(kin, kin);
  }
  return table.at(problem);
}

}  // namespace

bool has_bf16() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
}

void multiply(Arena& scratch, const Problem& problem, std::span<const std::int64_t> extents, const void* a,
              const void* b, float* c) {
  thread_local dnnl::stream stream(engine());
  // One table a thread: a memory object holds the operands of one call. oneDNN shares the code behind the
  // primitives.
  thread_local Table table;
  Matmul& matmul = prepared(table, problem, extents);

  const ArenaScope scope(scratch);
  matmul.a.set_data_handle(const_cast<void*>(a), stream);  // oneDNN has no memory that is only read
  matmul.b.set_data_handle(const_cast<void*>(b), stream);
  matmul.c.set_data_handle(c, stream);
  matmul.scratchpad.set_data_handle(scratch.allocate<std::byte>(matmul.scratchpad_size), stream);
  // Through C: the C++ call builds a map of its arguments on the heap every time.
  const std::array<dnnl_exec_arg_t, 4> arguments{{{DNNL_ARG_SRC, matmul.a.get()},
                                                  {DNNL_ARG_WEIGHTS, matmul.b.get()},
                                                  {DNNL_ARG_DST, matmul.c.get()},
                                                  {DNNL_ARG_SCRATCHPAD, matmul.scratchpad.get()}}};
  dnnl::error::wrap_c_api(dnnl_primitive_execute(matmul.primitive.get(), stream.get(),
                                                 static_cast<int>(arguments.size()), arguments.data()),
                          "oneDNN could not run a matrix product");
}

}  // namespace polyhead::kernels::onednn

#endif
