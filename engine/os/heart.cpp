#include "engine/os/heart.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

namespace firedrill {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

sigset_t termination() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}

// Whether SIGTERM came before `until`.
bool terminated_before(steady_clock::time_point until) {
  const sigset_t signals = termination();
  const nanoseconds left = std::max(nanoseconds(0), nanoseconds(until - steady_clock::now()));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec patience{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  return ::sigtimedwait(&signals, nullptr, &patience) == SIGTERM;
}

}  // namespace

Heart::Heart(nanoseconds period, std::function<void(std::uint64_t)> beat, std::function<void()> terminate)
    : period_(period), beat_(std::move(beat)), terminate_(std::move(terminate)) {
  beat_(1);
  thread_ = std::thread([this] { live(); });
}

Heart::~Heart() {
  ending_ = true;
  ::pthread_kill(thread_.native_handle(), SIGTERM);  // wakes it
  thread_.join();
}

void Heart::hold_termination() {
  const sigset_t signals = termination();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void Heart::live() {
  steady_clock::time_point next = steady_clock::now() + period_;
  std::uint64_t beats = 1;
  while (!ending_) {
    if (steady_clock::now() >= next) {
      beat_(++beats);
      next = steady_clock::now() + period_;
    }
    if (terminated_before(next) && !ending_) terminate_();
  }
}

}  // namespace firedrill
