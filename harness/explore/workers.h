// Workers: the threads of one exploration and what they share.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>

#include "harness/explore/explore.h"

namespace firedrill {

class Workers {
 public:
  explicit Workers(const ExploreOptions& options) : options_(options) {}

  const ExploreOptions& options() const { return options_; }
  // Runs `work` once a job with its number and its own part of the result; then adds the parts up. An exception of a
  // job is thrown here when all have ended.
  Exploration run(EngineKind engine, const std::function<void(int job, Exploration& mine)>& work);

  // A job asks this before each run. It is time to end: `mine` says afterwards that it is not complete.
  bool must_stop(Exploration& mine);
  void stop() { stop_ = true; }

 private:
  const ExploreOptions& options_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> runs_{0};
};

// What became of one leaf: counts it, and keeps a finding with what `partial` holds.
void judge(Exploration& mine, const CheckAnswer& answer, crash::Partial& partial, Workers& workers);

}  // namespace firedrill
