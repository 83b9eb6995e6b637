// ProcessAttempt: one attempt of the process world, as the supervisor sees it: starts the ranks, takes in what they
// say, notices their ends, tells the others to give up, and reaps every one.
//
// When the first rank ends without having finished, its peers see its connections close and mostly end by themselves
// with the error that they all share. Who has not after `told_after` is told to abort; who has not `killed_after` later
// is killed.
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
#include "engine/os/steady_clock.h"
#include "harness/history/history.h"
#include "harness/world/world.h"

namespace firedrill {

class ProcessAttempt final : private ChannelListener {
 public:
  static constexpr std::chrono::milliseconds told_after{500};
  static constexpr std::chrono::milliseconds killed_after{2'000};

  // `silence_max`: when no rank has said anything for that long, all of them are told to abort and then killed.
  ProcessAttempt(Launcher& launcher, Epoch epoch, History& history, int attempt, Duration silence_max)
      : launcher_(launcher), epoch_(epoch), history_(history), attempt_(attempt), silence_max_(silence_max) {}
  // Kills and reaps what still runs.
  ~ProcessAttempt() override;

  // Errors: unavailable; then no rank is left running.
  Status start(int ranks, const std::string& payload);
  // Returns when every rank is reaped.
  AttemptResult run();

 private:
  using Moment = std::chrono::steady_clock::time_point;
  struct Rank {
    RankProcess process;
    std::unique_ptr<ChannelPeer> peer;
    std::optional<RankOutcome> outcome;
    bool running = true;
    bool given_up = false;  // killed by the supervisor, not by a fault
    Event last;             // where it was last heard of
  };

  void on_event(int rank, const Event& event, std::string_view name, std::string_view detail, bool asked) override;
  void on_state(int rank, const Digest& state, std::span<const NamedDigest> tensors) override;
  void on_outcome(int rank, const RankOutcome& outcome) override;

  Rank& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
  void wait_for_news();
  void reap(Rank& rank);
  void conclude(Rank& rank, const ProcessExit& exit);
  void press_on();
  int running() const;
  void write_history();

  Launcher& launcher_;
  Epoch epoch_;
  History& history_;
  int attempt_;
  Duration silence_max_;
  Moment last_heard_ = std::chrono::steady_clock::now();
  std::vector<Rank> ranks_;
  std::vector<Event> events_;
  AttemptResult result_;
  std::string first_error_;
  std::string first_death_;
  std::optional<Moment> first_bad_end_;
  bool told_ = false;
};

}  // namespace firedrill
