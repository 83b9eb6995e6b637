// Launcher: starts, signals and reaps the processes of ranks. The supervisor has one; later ones may start ranks on
// other machines.
//
// Threads: one, the one that made it, and it must live as long as the launcher.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/os/descriptor.h"

namespace firedrill {

struct RankStart {
  int rank = 0;
  int attempt = 1;
  std::string payload;  // what the rank is to do, in the words of the rank's own code
  Descriptor channel;   // the rank's end of its channel
};

struct RankProcess {
  int rank = 0;
  int attempt = 1;
  pid_t pid = 0;
  Descriptor exited;  // readable when the process has ended (a pidfd)
};

struct ProcessExit {
  int code = 0;    // of a process that ended by itself
  int signal = 0;  // that ended it; 0 if none did
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // All processes of one attempt are in one process group. Errors: unavailable.
  virtual Result<RankProcess> start(RankStart start) = 0;
  // A process that has ended already is no error.
  virtual Status signal(const RankProcess& process, int signal) = 0;
  // Waits for the end of the process and takes it from the system. Errors: timeout, internal (not ours).
  virtual Result<ProcessExit> reap(RankProcess& process, std::chrono::nanoseconds patience) = 0;
};

}  // namespace firedrill
