#include "engine/os/termination.h"

#include <errno.h>
#include <fmt/format.h>
#include <pthread.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace firedrill {
namespace {

sigset_t both() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

Result<Termination> Termination::watch() {
  const sigset_t signals = both();
  Descriptor descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.valid()) {
    return Error{.code = Code::unavailable,
                 .message = fmt::format("cannot watch for signals: {}", strerrordesc_np(errno)),
                 .hint = "raise the limit of open files (ulimit -n)"};
  }
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  return Termination(std::move(descriptor), before);
}

Termination::Termination(Termination&& other) noexcept
    : signals_(std::move(other.signals_)), before_(other.before_), taken_(other.taken_) {}

Termination::~Termination() {
  if (!signals_.valid()) return;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  if (taken_ != 0) ::raise(taken_);
}

std::optional<std::string> Termination::came() {
  signalfd_siginfo info{};
  if (taken_ == 0 && ::read(signals_.number(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    taken_ = static_cast<int>(info.ssi_signo);
  }
  if (taken_ == 0) return std::nullopt;
  return fmt::format("SIG{}", sigabbrev_np(taken_));
}

void Termination::unblock_in_child() {
  const sigset_t signals = both();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace firedrill
