#include "harness/cli/stop_on_signal.h"

namespace firedrill {
namespace {

// A signal can reach nothing but what is static.
std::atomic<bool>& noted() {
  static std::atomic<bool> flag{false};
  return flag;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  noted() = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { noted() = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

StopOnSignal::~StopOnSignal() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

const std::atomic<bool>& StopOnSignal::came() { return noted(); }

}  // namespace firedrill
