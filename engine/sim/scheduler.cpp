#include "engine/sim/scheduler.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace firedrill::sim {

Scheduler::Scheduler(FiberPool& pool) : pool_(pool) {
  pool_.on_task_end([this](Fiber& fiber) { task_ended(fiber); });
}

void Scheduler::reset(const Schedule& schedule) {
  FD_CHECK(alive_.empty() && !current_, "{} fibers are alive: {}", alive_.size(), describe_waiting());
  pool_.on_task_end([this](Fiber& fiber) { task_ended(fiber); });
  random_ = schedule.seed != 0 && !schedule.plain;
  rng_ = Rng(schedule.seed);
  queue_.clear();
  waiting_.clear();
  first_expiry_ = never;
  now_ = Time{0};
  switches_ = 0;
}

Fiber& Scheduler::spawn(const SpawnOptions& options, std::function<void()> task) {
  Fiber& fiber = pool_.take();
  fiber.task = std::move(task);
  fiber.state = FiberState::ready;
  fiber.rank = options.rank;
  fiber.name = options.name;
  fiber.order = options.order;
  alive_.push_back(&fiber);
  push({.time = std::max(options.at, now_), .tie = draw_tie(fiber), .fiber = &fiber});
  return fiber;
}

RunStop Scheduler::run(Time limit) {
  FD_CHECK(!current_, "run() was called on a fiber");
  exceptions_ = abi::__cxa_get_globals();
  stop_ = false;
  limit_ = limit;
  while (!stop_) {
    queue_due_expiries();
    if (queue_.empty()) return alive_.empty() ? RunStop::idle : RunStop::stuck;
    if (queue_.back().time > limit_) return RunStop::limit;
    Fiber& next = pop();
    activate(next);
    pool_.switch_to(next);
    current_ = nullptr;
  }
  return RunStop::stopped;
}

Fiber& Scheduler::current() {
  FD_CHECK(current_, "only a fiber can do this");
  return *current_;
}

void Scheduler::let_pass(const Entry& entry) {
  current_->state = FiberState::ready;
  push(entry);
  yield();
}

Woken Scheduler::block(Time expiry, const WaitFor& what) {
  Fiber& self = current();
  FD_CHECK(!handling_exception(), "rank {} {} would wait while it handles an exception", self.rank, self.name);
  if (expiry <= now_) return Woken::expired;
  self.state = FiberState::blocked;
  self.notified = false;
  self.expiry = expiry;
  self.waits_for = what;
  self.filed = Filed::nowhere;
  if (expiry != never) wait_until({.time = expiry, .tie = draw_tie(self), .fiber = &self});
  yield();
  return self.notified ? Woken::notified : Woken::expired;
}

void Scheduler::wake(Fiber& fiber, Time at) {
  if (fiber.state != FiberState::blocked) return;
  at = std::max(at, now_);
  if (at > fiber.expiry || (fiber.notified && at >= fiber.time)) return;
  fiber.notified = true;
  set_time(fiber, at);
}

void Scheduler::expire_at(Fiber& fiber, Time at) {
  if (fiber.state != FiberState::blocked) return;
  at = std::max(at, now_);
  if (at >= fiber.expiry) return;
  fiber.expiry = at;
  if (fiber.notified && fiber.time <= at) return;
  fiber.notified = false;
  set_time(fiber, at);
}

void Scheduler::hasten(Fiber& fiber) {
  if (fiber.state == FiberState::running || fiber.state == FiberState::idle) return;
  fiber.notified = true;
  set_time(fiber, now_);
}

bool Scheduler::handling_exception() {
  Exceptions here;
  std::memcpy(&here, static_cast<const void*>(abi::__cxa_get_globals()), sizeof(here));
  return here.any();
}

std::string Scheduler::describe_waiting() const {
  std::vector<const Fiber*> blocked;
  for (const Fiber* fiber : alive_) {
    if (fiber->state == FiberState::blocked) blocked.push_back(fiber);
  }
  std::stable_sort(blocked.begin(), blocked.end(), [](const Fiber* a, const Fiber* b) { return a->order < b->order; });
  std::string text;
  for (const Fiber* fiber : blocked) {
    const WaitFor& wait = fiber->waits_for;
    if (!text.empty()) text += "; ";
    text += fmt::format("rank {} {} waits for ", fiber->rank, fiber->name);
    text += fmt::format(fmt::runtime(wait.what), wait.first, wait.second, wait.text);
    if (fiber->expiry != never) text += fmt::format(" until {} ns", fiber->expiry.count());
  }
  return text.empty() ? "nobody waits" : text;
}

void Scheduler::activate(Fiber& fiber) {
  FD_CHECK(fiber.time >= now_, "time would go back from {} to {} ns", now_.count(), fiber.time.count());
  now_ = fiber.time;
  fiber.state = FiberState::running;
  current_ = &fiber;
  ++switches_;
}

void Scheduler::yield() {
  Fiber& self = pool_.running();
  queue_due_expiries();
  if (stop_ || queue_.empty() || queue_.back().time > limit_) {
    current_ = nullptr;
    pool_.switch_to(pool_.outside());
    return;
  }
  Fiber& next = pop();
  activate(next);
  if (&next != &self) pool_.switch_to(next);
}

void Scheduler::task_ended(Fiber& fiber) {
  const auto found = std::find(alive_.begin(), alive_.end(), &fiber);
  *found = alive_.back();
  alive_.pop_back();
  yield();
}

// Those that wait, and the queue. A fiber knows in which of them it is.

void Scheduler::wait_until(const Entry& expiry) {
  expiry.fiber->time = expiry.time;
  expiry.fiber->tie = expiry.tie;
  expiry.fiber->filed = Filed::waiting;
  expiry.fiber->place = waiting_.size();
  waiting_.push_back(expiry);
  first_expiry_ = std::min(first_expiry_, expiry.time);
}

void Scheduler::wait_no_more(Fiber& fiber) {
  const std::size_t place = fiber.place;
  waiting_[place] = waiting_.back();
  waiting_[place].fiber->place = place;
  waiting_.pop_back();
  if (waiting_.empty()) first_expiry_ = never;
  fiber.filed = Filed::nowhere;
}

void Scheduler::queue_due_expiries() {
  while (!waiting_.empty() && (queue_.empty() || first_expiry_ <= queue_.back().time)) {
    const Entry first = *std::ranges::min_element(waiting_, [](const Entry& a, const Entry& b) { return a.before(b); });
    first_expiry_ = first.time;
    if (!queue_.empty() && first.time > queue_.back().time) return;
    wait_no_more(*first.fiber);
    push(first);
  }
}

void Scheduler::push(const Entry& entry) {
  entry.fiber->time = entry.time;
  entry.fiber->tie = entry.tie;
  entry.fiber->filed = Filed::queued;
  queue_.push_back(entry);
  auto place = queue_.end() - 1;
  for (; place != queue_.begin() && (place - 1)->before(entry); --place) *place = *(place - 1);
  *place = entry;
}

Fiber& Scheduler::pop() {
  Fiber& first = *queue_.back().fiber;
  first.filed = Filed::nowhere;
  queue_.pop_back();
  return first;
}

void Scheduler::set_time(Fiber& fiber, Time time) {
  const Entry entry{.time = time, .tie = draw_tie(fiber), .fiber = &fiber};
  if (fiber.filed == Filed::waiting) wait_no_more(fiber);
  if (fiber.filed == Filed::queued) std::erase_if(queue_, [&](const Entry& queued) { return queued.fiber == &fiber; });
  push(entry);
}

}  // namespace firedrill::sim
