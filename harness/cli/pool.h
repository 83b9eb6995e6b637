// Runs n pieces of work on some threads, each thread with a Session of its own.
#pragma once

#include <cstddef>
#include <functional>

#include "harness/run/run.h"

namespace firedrill {

struct PoolOptions {
  int jobs = 1;
  SessionOptions session = {};
};

// Calls work(0) ... work(n - 1), in no promised order unless jobs is 1. An exception of one is thrown here, after all
// have ended.
void run_pool(std::size_t n, const PoolOptions& options, const std::function<void(std::size_t, Session&)>& work);

}  // namespace firedrill
