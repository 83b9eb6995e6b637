// ProcessAttempt: one attempt of the process world, as the supervisor sees it: starts the ranks, takes in what they
// say, notices their ends, tells the others to give up, and reaps every one.
//
// When the first rank ends without having finished, its peers see its connections close and mostly end by themselves
// with the error that they all share. Who has not after `told_after` is told to abort; who has not `killed_after` later
// is killed. A rank that the watchdog (liveness.h) blames is killed at once where nothing else can reach it, and all
// others are told at once. A rank that got SIGTERM is killed when its grace time is over.
//
// Events of the ranks and of the supervisor go into the history when all ranks are gone, in the order of their times:
// all clocks of one machine agree, so what caused another comes before it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/os/channel_peer.h"
#include "engine/os/launcher.h"
#include "engine/os/pulse_board.h"
#include "engine/os/steady_clock.h"
#include "engine/os/termination.h"
#include "harness/history/history.h"
#include "harness/world/world.h"

namespace firedrill {

class ProcessAttempt final : private ChannelListener {
 public:
  static constexpr std::chrono::milliseconds told_after{500};
  static constexpr std::chrono::milliseconds killed_after{2'000};

  // All must outlive the attempt. `termination`: when a signal comes, all ranks are killed.
  ProcessAttempt(Launcher& launcher, Epoch epoch, History& history, Termination& termination, const Plan& plan,
                 const LivenessRules& rules, const PulseBoard& board, int attempt,
                 std::function<void(const Event&)> heard)
      : launcher_(launcher),
        epoch_(epoch),
        history_(history),
        termination_(termination),
        plan_(plan),
        rules_(rules),
        board_(board),
        attempt_(attempt),
        heard_(std::move(heard)) {}
  // Kills and reaps what still runs.
  ~ProcessAttempt() override;

  // Errors: unavailable; then no rank is left running.
  Status start(int ranks, const std::string& payload);
  // Returns when every rank is reaped. Errors: aborted, by a signal.
  Result<AttemptResult> run();

 private:
  using Moment = std::chrono::steady_clock::time_point;
  struct Rank {
    RankProcess process;
    std::unique_ptr<ChannelPeer> peer;
    std::optional<RankOutcome> outcome;
    bool running = true;
    std::string why_killed;         // by the supervisor, not by a fault; empty: it was not
    std::optional<Moment> kill_at;  // its grace time is over then
    bool exits_by_plan = false;
  };

  void on_event(int rank, const Event& event, std::string_view name, std::string_view detail, bool asked) override;
  void on_state(int rank, const Digest& state, std::span<const NamedDigest> tensors) override;
  void on_heartbeat(int rank, std::uint64_t beats, const PulseReading& pulse) override;
  void on_outcome(int rank, const RankOutcome& outcome) override;

  Rank& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
  void wait_for_news();
  int patience() const;
  void note_fault(Rank& rank, const Event& fired);
  void look_after();
  void blame(const Alarm& blame);
  void tell_all(const std::string& why);
  void kill(Rank& rank, const std::string& why);
  void reap(Rank& rank);
  void conclude(Rank& rank, const ProcessExit& exit);
  void press_on();
  int running() const;
  void keep(const Event& event);
  void write_history();

  Launcher& launcher_;
  Epoch epoch_;
  History& history_;
  Termination& termination_;
  const Plan& plan_;
  const LivenessRules& rules_;
  const PulseBoard& board_;
  int attempt_;
  std::function<void(const Event&)> heard_;
  std::optional<Watchdog> watchdog_;
  Moment next_look_ = std::chrono::steady_clock::now();
  std::vector<Rank> ranks_;
  std::vector<Event> events_;
  AttemptResult result_;
  std::string first_error_;
  std::string first_death_;
  std::string blame_;
  std::optional<Moment> first_bad_end_;
  std::optional<Moment> told_;
};

}  // namespace firedrill
