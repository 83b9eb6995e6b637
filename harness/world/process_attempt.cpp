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
  return {};
}

AttemptResult ProcessAttempt::run() {
  while (running() > 0) {
    wait_for_news();
    for (Rank& rank : ranks_) {
      if (rank.running) reap(rank);
    }
    press_on();
  }
  write_history();
  result_.why = result_.stuck || result_.broken > 0 || first_death_.empty() ? first_error_ : first_death_;
  if (result_.why.empty()) result_.why = "the job finished";
  return result_;
}

// Takes in what ranks say. Returns when something was said, when a rank has ended, or when it is time to press on.
void ProcessAttempt::wait_for_news() {
  std::vector<pollfd> watched;
  for (const Rank& rank : ranks_) {
    // A negative descriptor is passed over.
    watched.push_back({.fd = rank.running ? rank.peer->descriptor() : -1, .events = POLLIN, .revents = 0});
    watched.push_back({.fd = rank.running ? rank.process.exited.number() : -1, .events = POLLIN, .revents = 0});
  }
  Moment until = last_heard_ + silence_max_;
  if (first_bad_end_) until = *first_bad_end_ + (told_ ? told_after + killed_after : told_after);
  const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
  const int patience = static_cast<int>(std::clamp<std::int64_t>(left.count(), 10, 1'000'000));
  const int news = ::poll(watched.data(), watched.size(), patience);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (watched[2 * i].revents != 0) ranks_[i].peer->receive();
  }
  if (news > 0) last_heard_ = steady_clock::now();
  if (!first_bad_end_ && steady_clock::now() >= last_heard_ + silence_max_) {
    result_.stuck = true;
    first_error_ = fmt::format("no rank said anything for {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(silence_max_).count());
    first_bad_end_ = steady_clock::now();
  }
}

void ProcessAttempt::reap(Rank& rank) {
  Result<ProcessExit> exit = launcher_.reap(rank.process, milliseconds(0));
  if (exit.failed_with(Code::timeout)) return;
  // Its last words may have come after its channel was read.
  rank.peer->receive();
  rank.running = false;
  conclude(rank, exit ? *exit : ProcessExit{.code = -1});
}

void ProcessAttempt::conclude(Rank& rank, const ProcessExit& exit) {
  const int number = rank.process.rank;
  Event event{.kind = EventKind::rank_ended,
              .phase = rank.last.phase,
              .rank = static_cast<std::int16_t>(number),
              .attempt = attempt_,
              .step = rank.last.step,
              .time = epoch_.elapsed()};
  std::string text;
  // A word of the end counts only if the process then ended as it should; a kill may still come behind it.
  if (rank.outcome && exit.signal == 0) {
    event.a = static_cast<std::int64_t>(rank.outcome->end);
    if (rank.outcome->end != RankEnd::finished) {
      text = describe(rank.outcome->error);
      event.detail = history_.tables().names.intern(to_string(rank.outcome->error.code));
    }
  } else if (exit.signal == SIGKILL) {
    event.a = static_cast<std::int64_t>(RankEnd::died);
    text = rank.given_up ? "it did not end when it was told to, and was killed" : "killed";
  } else {
    event.a = static_cast<std::int64_t>(RankEnd::check_failed);  // a crash is a finding, as a failed check is
    text = !rank.peer->understood() ? "what it said could not be understood"
           : exit.signal != 0       ? fmt::format("it crashed with signal {}", exit.signal)
                                    : fmt::format("it ended with exit code {} and without a word", exit.code);
  }
  event.name = history_.tables().names.intern(text);
  events_.push_back(event);

  switch (static_cast<RankEnd>(event.a)) {
    case RankEnd::finished: ++result_.finished; return;
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
  const auto since = steady_clock::now() - *first_bad_end_;
  if (!told_ && since >= told_after) {
    told_ = true;
    const std::string& why = first_death_.empty() ? first_error_ : first_death_;
    for (Rank& rank : ranks_) {
      if (rank.running) rank.peer->abort(Error{.code = Code::aborted, .message = why});
    }
  }
  if (since < told_after + killed_after) return;
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    rank.given_up = true;
    (void)launcher_.signal(rank.process, SIGKILL);
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
  events_.push_back(heard);
  rank(number).last = heard;
  if (asked) rank(number).peer->answer();
}

void ProcessAttempt::on_state(int, const Digest& state, std::span<const NamedDigest> tensors) {
  history_.tables().states.describe(state, tensors);
}

void ProcessAttempt::on_outcome(int number, const RankOutcome& outcome) { rank(number).outcome = outcome; }

void ProcessAttempt::write_history() {
  std::ranges::stable_sort(events_, {}, &Event::time);
  for (const Event& event : events_) history_.append(event);
}

}  // namespace firedrill
