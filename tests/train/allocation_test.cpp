// Counts every allocation of the heap, of any thread and through any of its doors, by standing in front of
// glibc's. Sanitizers stand there themselves.
#include <cstdlib>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "polyhead/train/optimizer.h"
#include "polyhead/train/update.h"
#include "tiny_task.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

/// oneDNN allocates when it makes and runs its primitives, which is not this project's to change.
bool called_from_onednn() {
  void* frames[64];
  const int n = backtrace(frames, 64);
  for (int i = 0; i < n; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) != 0 && info.dli_fname != nullptr && std::strstr(info.dli_fname, "libdnnl"))
      return true;
  }
  return false;
}

void count() {
  thread_local bool inside = false;
  if (!counting || inside) return;
  inside = true;
  if (!called_from_onednn()) ++allocations;
  inside = false;
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  count();
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, std::size_t bytes) {
  count();
  return __libc_realloc(p, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) {
  *p = memalign(alignment, bytes);
  return *p ? 0 : ENOMEM;
}
}

namespace polyhead::train {
namespace {

/// Trains on batches of a corpus and counts from update `from` on.
class Training {
 public:
  Training(DType dtype, int threads, const DisagreementConfig& disagreement = {})
      : model_(tiny_model(dtype)),
        workers_(static_cast<std::size_t>(threads)),
        step_(model_, 4, Precision::f32, workers_, disagreement),
        mean_(model_.parameters().slab().shape, dtype),
        squares_(model_.parameters().slab().shape, dtype),
        adam_(AdamConfig{}, {}) {}

  void update(std::span<const std::int32_t> pairs) {
    const TreeReduction& sum =
        step_.run(corpus_, pairs, 0.1, RngKey{1}.fold(static_cast<std::uint64_t>(++updates_)));
    const double norm = global_norm(sum.gradients(), scratch_, static_cast<int>(workers_.size()));
    adam_.step({model_.parameters().slab(), sum.gradients(), mean_.tensor(), squares_.tensor()}, updates_,
               1e-3, clip_factor(norm, 1) / sum.totals().tokens, static_cast<int>(workers_.size()));
  }
  int allocations_of(std::span<const std::int32_t> pairs) {
    allocations = 0;
    counting = true;
    update(pairs);
    counting = false;
    return allocations;
  }

  data::ParallelCorpus corpus_ = tiny_corpus(200, 12);
  data::BatchPlan plan_ = data::BatchPlan::training(corpus_, 150, 1, 0);

 private:
  nn::Transformer model_;
  std::vector<Worker> workers_;
  GradientStep step_;
  Arena scratch_;
  Slab mean_, squares_;
  Adam adam_;
  std::int64_t updates_ = 0;
};

class Allocations : public ::testing::Test {
 protected:
  void SetUp() override {
    called_from_onednn();  // the first backtrace loads a library
    allocations = 0;
    counting = true;
    void* volatile taken[] = {::operator new(100), std::malloc(100), std::aligned_alloc(64, 128)};
    counting = false;
    ::operator delete(taken[0]);
    std::free(taken[1]);
    std::free(taken[2]);
    ASSERT_EQ(allocations, 3) << "the count itself does not work";
  }
};

class Allocations32And64 : public Allocations, public ::testing::WithParamInterface<DType> {};

TEST_P(Allocations32And64, StepsAfterTheFirstTakeNoneForBatchesOfNewShapes) {
  Training training(GetParam(), 2);
  training.update(training.plan_[0]);
  ASSERT_GE(training.plan_.size(), 8);
  for (std::int64_t i = 1; i < training.plan_.size(); ++i)
    EXPECT_EQ(training.allocations_of(training.plan_[i]), 0) << "update " << i + 1;
}

TEST_F(Allocations, StepsWithDisagreeingHeadsTakeNoneEither) {
  Training training(DType::f32, 2, {.subspace = 1, .position = 1, .output = 1});
  training.update(training.plan_[0]);
  for (std::int64_t i = 1; i < 6; ++i)
    EXPECT_EQ(training.allocations_of(training.plan_[i]), 0) << "update " << i + 1;
}

INSTANTIATE_TEST_SUITE_P(DTypes, Allocations32And64, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace polyhead::train

#endif
