// Termination: Ctrl-C and SIGTERM of a supervisor, taken as something to wait for and not as an end on the spot, so
// that ranks are reaped and temporary files removed first. While one lives, both signals are blocked in the thread that
// made it; its end puts the mask back and gives the signal that came its usual effect, which ends the process.
//
// Threads: the one that made it. A process with other threads must make it before them, or block the signals there.
#pragma once

#include <signal.h>

#include <optional>

#include "engine/base/result.h"
#include "engine/os/descriptor.h"

namespace firedrill {

class Termination {
 public:
  // Errors: unavailable.
  static Result<Termination> watch();
  ~Termination();
  Termination(Termination&& other) noexcept;
  Termination& operator=(Termination&&) = delete;

  // Readable when a signal has come and was not taken.
  int descriptor() const { return signals_.number(); }
  // The name of the signal that came, from then on; nothing before. Does not wait.
  std::optional<std::string> came();

  // For a process that is started while one lives: blocked signals would be handed down.
  static void unblock_in_child();

 private:
  Termination(Descriptor signals, sigset_t before) : signals_(std::move(signals)), before_(before) {}

  Descriptor signals_;
  sigset_t before_{};
  int taken_ = 0;
};

}  // namespace firedrill
