#include "engine/sim/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace firedrill::sim {

SimRank::SimRank(Attempt& attempt)
    : attempt_(attempt), machine_(attempt.machine()), transport_(*this), store_(*this), clock_(*this), host_(*this) {}

void SimRank::reset(int rank, int node) {
  rank_ = rank;
  node_ = node;
  gate_ = Gate::open;
  end_ = RankEnd::running;
  main_has_ended_ = false;
  stop_requested_ = false;
  held_ = false;
  thrown_.clear();
  abort_at_ = never;
  tasks_.clear();
  files_ = machine_.disk().files({.node = node, .rank = rank, .attempt = attempt_.number()}, this);
  transport_.clear();
  store_.use(*attempt_.store_);
  host_.clear();
}

Error SimRank::refusal() {
  if (gate_ == Gate::frozen && scheduler().in_fiber() && !Scheduler::handling_exception()) {
    while (gate_ == Gate::frozen) scheduler().block(never, {.what = "nothing: it is stopped"});
  }
  if (gate_ == Gate::fenced) {
    return {.code = Code::fenced, .message = fmt::format("attempt {} is over for rank {}", attempt_.number(), rank_)};
  }
  return {.code = Code::dead, .message = fmt::format("rank {} is dead", rank_)};
}

void SimRank::kill() {
  if (gate_ == Gate::dead) return;
  gate_ = Gate::dead;
  if (end_ == RankEnd::running) end_ = RankEnd::died;
  for (Fiber* task : tasks_) scheduler().hasten(*task);
}

void SimRank::freeze() {
  if (gate_ == Gate::open) gate_ = Gate::frozen;
}

void SimRank::hold() {
  held_ = true;
  while (gate_ == Gate::open) scheduler().block(never, {.what = "nothing: it is stuck"});
}

void SimRank::fence() {
  if (gate_ != Gate::open && gate_ != Gate::frozen) return;
  gate_ = Gate::fenced;
  for (Fiber* task : tasks_) scheduler().wake(*task, scheduler().now());
}

void SimRank::abort_at(Time time, const Error& reason) {
  if (time >= abort_at_) return;
  abort_at_ = time;
  abort_reason_ = {.code = Code::aborted, .message = reason.message, .hint = reason.hint, .injected = reason.injected};
  for (Fiber* task : tasks_) scheduler().expire_at(*task, time);
}

Status SimRank::wait(Time deadline, const WaitFor& what) {
  if (!open()) return refusal();
  scheduler().block(std::min(deadline, abort_at_), what);
  if (!open()) return refusal();
  if (scheduler().now() >= abort_at_) return abort_reason_;
  return {};
}

Status SimRank::pass(FileOp op, std::int64_t bytes) {
  switch (op) {
    case FileOp::sync:
    case FileOp::sync_directory: return enter(costs().file_sync);
    case FileOp::write:
    case FileOp::read: return enter(costs().file_operation + transfer_time(bytes, costs().file_bandwidth));
    case FileOp::close: return enter(Duration{0});
    default: return enter(costs().file_operation);
  }
}

void SimRank::start(std::function<void()> main) {
  FD_CHECK(tasks_.empty() && !main_has_ended_, "rank {} was started already", rank_);
  spawn_fiber("main", true, std::move(main));
}

Status SimRank::spawn(std::string_view name, std::function<void()> task) {
  FD_TRY_VOID(enter(Duration{0}));
  spawn_fiber(name, false, std::move(task));
  return {};
}

Fiber& SimRank::spawn_fiber(std::string_view name, bool is_main, std::function<void()> task) {
  const SpawnOptions options = {.at = scheduler().now(),
                                .order = static_cast<std::uint64_t>(rank_) << 32 | machine_.next_serial(),
                                .rank = rank_,
                                .name = name};
  Fiber& fiber = scheduler().spawn(options, [this, is_main, run = std::move(task)] { run_task(is_main, run); });
  tasks_.push_back(&fiber);
  ++attempt_.tasks_alive_;
  return fiber;
}

void SimRank::run_task(bool is_main, const std::function<void()>& task) {
  bool threw = false;
  try {
    task();
  } catch (const std::exception& exception) {
    threw = open();  // of the dead nothing is reported
    if (threw) thrown_ = exception.what();
  } catch (...) {
    threw = open();
    if (threw) thrown_ = "an exception that is not a std::exception";
  }
  if (threw) {
    end_ = RankEnd::threw;
    attempt_.kill_rank(rank_);
  }
  std::erase(tasks_, &scheduler().current());
  if (is_main) main_ended();
  if (--attempt_.tasks_alive_ == 0) scheduler().stop();
}

void SimRank::main_ended() {
  main_has_ended_ = true;
  if (end_ == RankEnd::running) end_ = RankEnd::finished;
  if (attempt_.on_rank_end) attempt_.on_rank_end(rank_);
  kill();
  transport_.close_at(scheduler().now() + costs().failure_detection);
}

// Clock.

Time RankClock::now() const { return rank_.scheduler().now(); }

Status RankClock::sleep_until(Time time) {
  FD_TRY_VOID(rank_.enter_abortable(Duration{0}));
  while (now() < time) FD_TRY_VOID(rank_.wait(time, {.what = "the time {0} ns", .first = time.count()}));
  return {};
}

// Host.

int RankHost::node() const { return rank_.node(); }
bool RankHost::dead() const { return rank_.dead(); }
void RankHost::kill_self() { rank_.attempt().kill_rank(rank_.number()); }

Status RankHost::spawn(std::string_view name, std::function<void()> task) { return rank_.spawn(name, std::move(task)); }

RankHost::Event& RankHost::event(EventId id) {
  for (Event& known : events_) {
    if (known.id == id) return known;
  }
  return events_.emplace_back(Event{.id = id});
}

Status RankHost::wait(EventId id, Time deadline) {
  FD_TRY_VOID(rank_.enter_abortable(Duration{0}));
  for (;;) {
    Event& waited_for = event(id);
    if (waited_for.notified) {
      waited_for.notified = false;
      return {};
    }
    if (rank_.scheduler().now() >= deadline) {
      return Error{.code = Code::timeout, .message = fmt::format("event {} was not notified in time", id)};
    }
    FD_CHECK(!waited_for.waiter, "two tasks of rank {} wait for event {}", rank_.number(), id);
    waited_for.waiter = &rank_.scheduler().current();
    Status waited = rank_.wait(deadline, {.what = "event {0}", .first = static_cast<std::int64_t>(id)});
    event(id).waiter = nullptr;
    if (!waited) return waited;
  }
}

void RankHost::notify(EventId id) {
  if (!rank_.open()) return;
  Event& notified = event(id);
  notified.notified = true;
  if (notified.waiter) rank_.scheduler().wake(*notified.waiter, rank_.scheduler().now());
}

}  // namespace firedrill::sim
