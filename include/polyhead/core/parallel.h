#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

namespace polyhead {

/// How many threads to take where nobody says: OMP_NUM_THREADS, else as many as there are cores for the process.
inline int default_threads() { return omp_get_max_threads(); }

/// Calls body(i, worker) for every i in 0 … n − 1 on at most `threads` threads; worker < threads names the
/// thread. Indices are handed out in order, one at a time. The only place that starts threads. When bodies
/// throw, the exception of the smallest i is rethrown after all have ended; what bodies compute must not
/// depend on `worker`.
template <class Body>
void parallel_for(int threads, std::int64_t n, const Body& body) {
  std::exception_ptr error;
  std::int64_t error_index = n;
  const auto run = [&](std::int64_t i, int worker) {
    try {
      body(i, worker);
    } catch (...) {
#pragma omp critical(polyhead_parallel_for)
      if (i < error_index) {
        error_index = i;
        error = std::current_exception();
      }
    }
  };
  // Libraries called from a body (oneDNN) must stay on its thread.
  const auto alone = [](const auto& loop) {
    const int outer = omp_get_max_threads();
    omp_set_num_threads(1);
    loop();
    omp_set_num_threads(outer);
  };
  if (threads == 1) {  // libgomp allocates for every region of one thread
    alone([&] {
      for (std::int64_t i = 0; i < n; ++i) run(i, 0);
    });
  } else {
#pragma omp parallel num_threads(threads) default(shared)
    alone([&] {
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t i = 0; i < n; ++i) run(i, omp_get_thread_num());
    });
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace polyhead
