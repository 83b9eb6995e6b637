// Zygote: a single-threaded process that has loaded everything a rank needs and forks ranks on request, because loading
// LibTorch for every rank of every attempt would cost more than the ranks' work. It does nothing else: no store, no
// socket but the one to the supervisor, no backward pass, no device before the forks.
//
// The program's main must call run_zygote when its first argument is `zygote_verb`, before it does anything else.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/os/launcher.h"

namespace firedrill {

inline constexpr const char* zygote_verb = "__zygote";

// What a rank's process runs; the result is its exit code.
using RankMain = std::function<int(RankStart)>;

// The life of the zygote; returns its exit code when the supervisor is gone. `warm_up` runs once before the first fork.
int run_zygote(const std::function<void()>& warm_up, const RankMain& rank_main);

// Ranks are forked twice, so that they become children of this process (which turns itself into a subreaper) and are
// reaped here. Each dies by SIGKILL when this process does. The destructor kills and reaps whatever is left.
class ZygoteLauncher final : public Launcher {
 public:
  // Starts this program again with `zygote_verb`. Errors: unavailable.
  static Result<std::unique_ptr<ZygoteLauncher>> start_zygote();
  ~ZygoteLauncher() override;

  Result<RankProcess> start(RankStart start) override;
  Status signal(const RankProcess& process, int signal) override;
  Result<ProcessExit> reap(RankProcess& process, std::chrono::nanoseconds patience) override;

 private:
  struct State;
  explicit ZygoteLauncher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace firedrill
