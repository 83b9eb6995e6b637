// StopOnSignal: while one lives, Ctrl-C and SIGTERM are only noted, so that a verb can end what is under way, tell what
// it did and leave nothing behind. A second one has its usual effect. One at a time; threads: any may ask.
#pragma once

#include <atomic>
#include <csignal>

namespace firedrill {

class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  // Since the last one was made.
  static const std::atomic<bool>& came();

 private:
  struct sigaction interrupt_before_ = {};
  struct sigaction terminate_before_ = {};
};

}  // namespace firedrill
