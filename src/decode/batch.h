#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "polyhead/core/exec.h"
#include "polyhead/core/parallel.h"
#include "polyhead/core/profile.h"
#include "polyhead/decode/translate.h"
#include "polyhead/nn/transformer.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::decode {

/// `sentences` end to end. Lives in `arena`.
nn::TokenBatch pack(Arena& arena, std::span<const TokenIds> sentences);

/// The decoder's input for each target: bos, then the target without its last id. Lives in `arena`.
nn::TokenBatch shift(Arena& arena, const nn::TokenBatch& targets);

/// Whether a sentence has no ids other than eos.
bool is_empty(TokenIds sentence);

/// Sentences decoded together, by their numbers in the input.
using Batch = std::span<const std::int64_t>;

/// The sentences of `order` cut into runs of at most `limit` of cost(sentence), or of one sentence; into
/// about four for each thread where there are enough, so that threads end together.
std::vector<Batch> cut(std::span<const std::int64_t> order, std::int64_t limit, int threads,
                       const std::function<std::int64_t(std::int64_t)>& cost);

/// Calls body(exec, batch) for every batch; each thread has arenas of its own, which are empty at every call, and a
/// profile of its own where `profile` is not null, which receives their sum.
template <class Body>
void for_each_batch(std::span<const Batch> batches, int threads, const Progress& progress, Profile* profile,
                    const Body& body) {
  struct Workspace {
    Arena activations, scratch;
    Profile profile;
  };
  const auto count = static_cast<std::int64_t>(batches.size());
  const int workers = static_cast<int>(std::clamp<std::int64_t>(count, 1, std::max(threads, 1)));
  std::vector<std::unique_ptr<Workspace>> workspaces(static_cast<std::size_t>(workers));
  std::mutex reporting;
  parallel_for(workers, count, [&](std::int64_t i, int worker) {
    auto& workspace = workspaces[static_cast<std::size_t>(worker)];
    if (!workspace) workspace = std::make_unique<Workspace>();
    const ArenaScope activations(workspace->activations), scratch(workspace->scratch);
    Exec exec{workspace->activations, workspace->scratch, {}, false};
    if (profile) exec.profile = &workspace->profile;
    const Batch batch = batches[static_cast<std::size_t>(i)];
    body(exec, batch);
    if (!progress) return;
    const std::lock_guard lock(reporting);
    progress(static_cast<std::int64_t>(batch.size()));
  });
  for (const auto& workspace : workspaces)
    if (profile && workspace) profile->add(workspace->profile);
}

}  // namespace polyhead::decode
