#include "harness/world/process_attempt.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>

namespace firedrill {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds reaped_within{10};  // after a SIGKILL, or after the system said that it has ended

}  // namespace

ProcessAttempt::~ProcessAttempt() {
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    (void)launcher_.signal(rank.process, SIGKILL);
    (void)launcher_.reap(rank.process, reaped_within);
  }
}

Status ProcessAttempt::start(int ranks, const std::string& payload) {
  ChannelListener& listener = *this;
  for (int number = 0; number < ranks; ++number) {
    FD_TRY(auto channel, make_channel());
    FD_TRY(RankProcess process,
           launcher_.start(RankStart{
               .rank = number, .attempt = attempt_, .payload = payload, .channel = std::move(channel.second)}));
    Rank rank;
    rank.process = std::move(process);
    rank.peer = std::make_unique<ChannelPeer>(number, std::move(channel.first), listener);
    ranks_.push_back(std::move(rank));
  }
  watchdog_.emplace(ranks, LivenessLimits::of(plan_.job.cluster), rules_, epoch_.elapsed());
  return {};
}

Result<AttemptResult> ProcessAttempt::run() {
  while (running() > 0) {
    wait_for_news();
    if (const auto signal = termination_.came()) {
      return Error{.code = Code::aborted,
                   .message = fmt::format("{} came in attempt {}: all ranks are ended", *signal, attempt_)};
    }
    for (Rank& rank : ranks_) {
      if (rank.running) reap(rank);
    }
    look_after();
    press_on();
  }
  write_history();
  result_.why = result_.broken > 0     ? first_error_
                : !blame_.empty()      ? blame_
                : first_death_.empty() ? first_error_
                                       : first_death_;
  if (result_.why.empty()) result_.why = result_.left > 0 ? "all ranks left as agreed" : "the job finished";
  return result_;
}

// Takes in what ranks say. Returns when something was said, when a rank has ended, or when it is time to look again.
void ProcessAttempt::wait_for_news() {
  std::vector<pollfd> watched;
  for (const Rank& rank : ranks_) {
    // A negative descriptor is passed over.
    watched.push_back({.fd = rank.running ? rank.peer->descriptor() : -1, .events = POLLIN, .revents = 0});
    watched.push_back({.fd = rank.running ? rank.process.exited.number() : -1, .events = POLLIN, .revents = 0});
  }
  watched.push_back({.fd = termination_.descriptor(), .events = POLLIN, .revents = 0});
  (void)::poll(watched.data(), watched.size(), patience());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (watched[2 * i].revents != 0) ranks_[i].peer->receive();
  }
}

// Milliseconds until something must be done although nothing was said.
int ProcessAttempt::patience() const {
  Moment until = next_look_;
  if (first_bad_end_) until = std::min(until, told_ ? *told_ + killed_after : *first_bad_end_ + told_after);
  for (const Rank& rank : ranks_) {
    if (rank.running && rank.kill_at) until = std::min(until, *rank.kill_at);
  }
  const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 10, 1'000'000));
}

// Asks the watchdog, when it is time to, and ends whose grace time is over.
void ProcessAttempt::look_after() {
  const Moment now = steady_clock::now();
  for (Rank& rank : ranks_) {
    if (!rank.running || !rank.kill_at || now < *rank.kill_at) continue;
    rank.kill_at.reset();
    kill(rank, "its grace time was over, and it was killed");
  }
  if (now < next_look_) return;
  next_look_ = now + LivenessLimits::of(plan_.job.cluster).period();
  if (first_bad_end_) return;
  if (const std::optional<Alarm> found = watchdog_->look(epoch_.elapsed())) blame(*found);
}

void ProcessAttempt::blame(const Alarm& found) {
  blame_ = describe(found);
  // A rank that has fallen silent still shows where it is.
  const PulseReading last = found.rank >= 0 ? board_.of(found.rank) : found.last;
  keep(Event{.kind = EventKind::suspected,
             .phase = last.phase,
             .attempt = attempt_,
             .step = last.step,
             .a = found.rank,
             .b = static_cast<std::int64_t>(found.suspicion),
             .c = -1,
             .detail = history_.tables().names.intern(found.waited_for),
             .time = epoch_.elapsed()});
  first_bad_end_ = steady_clock::now();
  const bool deaf = found.suspicion == Suspicion::stopped || found.suspicion == Suspicion::stuck;
  if (deaf) kill(rank(found.rank), fmt::format("it was {}, and was killed", to_string(found.suspicion)));
  tell_all(blame_);
}

void ProcessAttempt::tell_all(const std::string& why) {
  told_ = steady_clock::now();
  for (Rank& rank : ranks_) {
    if (rank.running) rank.peer->abort(Error{.code = Code::aborted, .message = why});
  }
}

void ProcessAttempt::kill(Rank& rank, const std::string& why) {
  if (rank.why_killed.empty()) rank.why_killed = why;
  (void)launcher_.signal(rank.process, SIGKILL);
}

void ProcessAttempt::reap(Rank& rank) {
  Result<ProcessExit> exit = launcher_.reap(rank.process, milliseconds(0));
  if (exit.failed_with(Code::timeout)) return;
  // Its last words may have come after its channel was read.
  rank.peer->receive();
  rank.running = false;
  watchdog_->ended(rank.process.rank);
  conclude(rank, exit ? *exit : ProcessExit{.code = -1});
}

void ProcessAttempt::conclude(Rank& rank, const ProcessExit& exit) {
  const int number = rank.process.rank;
  const PulseReading last = board_.of(number);
  Event event{.kind = EventKind::rank_ended,
              .phase = last.phase,
              .rank = static_cast<std::int16_t>(number),
              .attempt = attempt_,
              .step = last.step,
              .time = epoch_.elapsed()};
  std::string text;
  const bool said_so = rank.outcome && rank.outcome->end == RankEnd::finished;
  // A word of the end counts only if the process then ended as it should; a kill may still come behind it.
  if (exit.signal == 0 && rules_.completed(said_so, exit.code)) {
    event.a = static_cast<std::int64_t>(RankEnd::finished);
  } else if (rank.outcome && exit.signal == 0) {
    event.a = static_cast<std::int64_t>(rank.outcome->end);
    if (rank.outcome->end != RankEnd::left) {
      text = describe(rank.outcome->error);
      event.detail = history_.tables().names.intern(to_string(rank.outcome->error.code));
    }
  } else if (exit.signal == SIGKILL) {
    event.a = static_cast<std::int64_t>(RankEnd::died);
    text = rank.why_killed.empty() ? "killed" : rank.why_killed;
  } else if (rank.exits_by_plan && exit.signal == 0) {
    event.a = static_cast<std::int64_t>(RankEnd::failed);
    text = fmt::format("it ended with exit code {} before its work was done", exit.code);
    event.detail = history_.tables().names.intern(to_string(Code::dead));
  } else {
    event.a = static_cast<std::int64_t>(RankEnd::check_failed);  // a crash is a finding, as a failed check is
    text = !rank.peer->understood() ? "what it said could not be understood"
           : exit.signal != 0       ? fmt::format("it crashed with signal {}", exit.signal)
                                    : fmt::format("it ended with exit code {} and without a word", exit.code);
  }
  event.name = history_.tables().names.intern(text);
  keep(event);

  switch (static_cast<RankEnd>(event.a)) {
    case RankEnd::finished: ++result_.finished; return;
    case RankEnd::left: ++result_.left; return;
    case RankEnd::failed: ++result_.failed; break;
    case RankEnd::died: ++result_.died; break;
    case RankEnd::check_failed: ++result_.broken; break;
  }
  if (static_cast<RankEnd>(event.a) == RankEnd::died) {
    if (first_death_.empty()) first_death_ = fmt::format("rank {} died", number);
  } else if (first_error_.empty() || static_cast<RankEnd>(event.a) == RankEnd::check_failed) {
    first_error_ = fmt::format("rank {}: {}", number, text);
  }
  if (!first_bad_end_) first_bad_end_ = steady_clock::now();
}

// Sees to it that the others end when one has ended badly.
void ProcessAttempt::press_on() {
  if (!first_bad_end_) return;
  const Moment now = steady_clock::now();
  if (!told_ && now >= *first_bad_end_ + told_after) tell_all(first_death_.empty() ? first_error_ : first_death_);
  if (!told_ || now < *told_ + killed_after) return;
  for (Rank& rank : ranks_) {
    if (rank.running) kill(rank, "it did not end when it was told to, and was killed");
  }
}

int ProcessAttempt::running() const {
  return static_cast<int>(std::ranges::count_if(ranks_, [](const Rank& rank) { return rank.running; }));
}

void ProcessAttempt::on_event(int number, const Event& event, std::string_view name, std::string_view detail,
                              bool asked) {
  Event heard = event;
  heard.name = history_.tables().names.intern(name);
  heard.detail = history_.tables().names.intern(detail);
  keep(heard);
  if (heard.kind == EventKind::fault_fired) note_fault(rank(number), heard);
  if (asked) rank(number).peer->answer();
}

void ProcessAttempt::on_state(int, const Digest& state, std::span<const NamedDigest> tensors) {
  history_.tables().states.describe(state, tensors);
}

void ProcessAttempt::on_heartbeat(int number, std::uint64_t beats, const PulseReading& pulse) {
  const bool rank_exists = pulse.waits_for < static_cast<int>(ranks_.size());
  if (rank_exists) watchdog_->heard(number, {.pulse = pulse, .beats = beats}, epoch_.elapsed());
}

// What the supervisor does for a fault, and must know of it.
void ProcessAttempt::note_fault(Rank& rank, const Event& fired) {
  if (fired.a < 0 || fired.a >= static_cast<std::int64_t>(plan_.faults.size())) return;
  const FaultKind kind = plan_.faults[static_cast<std::size_t>(fired.a)].kind;
  if (kind == FaultKind::exit) rank.exits_by_plan = true;
  if (kind == FaultKind::preempt && !rank.kill_at) rank.kill_at = steady_clock::now() + plan_.job.cluster.grace;
}

void ProcessAttempt::on_outcome(int number, const RankOutcome& outcome) { rank(number).outcome = outcome; }

void ProcessAttempt::keep(const Event& event) {
  events_.push_back(event);
  if (heard_) heard_(event);
}

void ProcessAttempt::write_history() {
  std::ranges::stable_sort(events_, {}, &Event::time);
  for (const Event& event : events_) history_.append(event);
}

}  // namespace firedrill
