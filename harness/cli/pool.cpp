#include "harness/cli/pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/model/numerics.h"

namespace firedrill {

void run_pool(std::size_t n, const PoolOptions& options, const std::function<void(std::size_t, Session&)>& work) {
  const std::size_t threads = std::min<std::size_t>(static_cast<std::size_t>(std::max(options.jobs, 1)), n);
  if (threads <= 1) {
    Session session(options.session);
    for (std::size_t i = 0; i < n; ++i) work(i, session);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto loop = [&] {
    try {
      pin_numerics();  // a part of the pins is kept per thread
      Session session(options.session);
      for (std::size_t i = next++; i < n; i = next++) work(i, session);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::jthread> running;
  for (std::size_t t = 0; t < threads; ++t) running.emplace_back(loop);
  running.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace firedrill
