// Scheduler: discrete-event scheduling of fibers in virtual time. Whoever has the earliest time runs; charging a cost
// moves the running fiber into the future and lets earlier ones pass, so observed time never goes back, on no fiber.
// The order is a pure function of the seed and of what the fibers do.
//
// With a seed other than 0 every charged cost but compute is scaled by a drawn factor (1/2 to 4, now and then 16), and
// ties are broken by draw: other seeds give really different interleavings. `plain` switches both off: ties go by rank.
//
// Threads: one. Errors: none; a deadlock is told by run() and described by describe_waiting(). What it does not do:
// preempt. A fiber that handles an exception (in a catch block, or unwinding) never yields: a charge is free there, and
// blocking fails a check, because the language run-time keeps exceptions per thread and not per fiber.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/sim/fiber_pool.h"

namespace firedrill::sim {

struct Schedule {
  std::uint64_t seed = 0;
  bool plain = false;
};

struct SpawnOptions {
  Time at{0};               // first runs then
  std::uint64_t order = 0;  // smaller is first among equals when plain; no two alive share one
  int rank = -1;            // for messages, with the name
  std::string_view name = "main";
};

enum class Woken : std::uint8_t { notified, expired };

// Why run() came back.
enum class RunStop : std::uint8_t {
  stopped,  // stop() was called
  idle,     // no fiber is left
  stuck,    // all fibers that are left wait without end: a deadlock
  limit,    // the next event lies behind the limit
};

class Scheduler {
 public:
  explicit Scheduler(FiberPool& pool);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Back to time 0 under another schedule. No fiber may be alive.
  void reset(const Schedule& schedule);

  Fiber& spawn(const SpawnOptions& options, std::function<void()> task);
  // Runs fibers until one of the reasons above. Only from outside of fibers.
  RunStop run(Time limit = never);
  // Lets run() return at the next yield; the fibers go on with the next run().
  void stop() { stop_ = true; }

  // Outside of fibers, after run() came back with `limit`: the time up to then passes in which nothing happens.
  void pass_until(Time time) { now_ = std::max(now_, time); }

  Time now() const { return now_; }
  bool in_fiber() const { return current_ != nullptr; }
  Fiber& current();
  std::size_t alive() const { return alive_.size(); }
  std::uint64_t switches() const { return switches_; }

  // The running fiber spends this long, scaled by the schedule; outside of fibers time stands still.
  void charge(Duration cost) {
    if (cost.count() > 0) spend(jittered(cost));
  }
  // The same without scaling: compute.
  void charge_exactly(Duration cost) {
    if (cost.count() > 0) spend(cost);
  }
  Duration jittered(Duration cost) {
    if (!random_) return cost;
    const std::uint64_t draw = rng_.next();
    if (draw % 32 == 0) return cost * 16;
    const auto factor = static_cast<std::int64_t>(128 + ((draw >> 32) * 897 >> 32));  // 128/256 to 1024/256
    const auto count = static_cast<std::int64_t>(cost.count());
    return Duration{std::max<std::int64_t>(1, (count >> 8) * factor + ((count & 255) * factor >> 8))};
  }

  // The running fiber waits until woken or until `expiry`, whichever is earlier. May wake without a reason: look again.
  Woken block(Time expiry, const WaitFor& what);
  // A blocked fiber goes on at `at` (now at the earliest), unless its expiry is before that.
  void wake(Fiber& fiber, Time at);
  // A blocked fiber gives up at `at` if it would have waited longer.
  void expire_at(Fiber& fiber, Time at);
  // A fiber that is blocked or spends time goes on now.
  void hasten(Fiber& fiber);

  // The thread is unwinding or in a catch block.
  static bool handling_exception();

  // "rank 0 main waits for a message from rank 2 with tag 7 (at 1200 ns); ..." over all blocked fibers.
  std::string describe_waiting() const;

 private:
  struct Entry {
    Time time;
    std::uint64_t tie;
    Fiber* fiber;
    bool before(const Entry& other) const { return time != other.time ? time < other.time : tie < other.tie; }
  };

  // What the language run-time knows of the exceptions of a thread. The Itanium C++ ABI fixes the start of this
  // structure; only its name is public in <cxxabi.h>.
  struct Exceptions {
    void* caught = nullptr;
    unsigned int uncaught = 0;
    bool any() const { return caught != nullptr || uncaught != 0; }
  };

  void spend(Duration cost) {
    if (!current_) return;
    Exceptions here;
    std::memcpy(&here, exceptions_, sizeof(here));
    if (here.any()) return;
    const Entry entry{.time = now_ + cost, .tie = draw_tie(*current_), .fiber = current_};
    if (!stop_ && entry.time <= limit_ && entry.time < first_expiry_ &&
        (queue_.empty() || entry.before(queue_.back()))) {
      now_ = entry.time;
    } else {
      let_pass(entry);
    }
  }
  void let_pass(const Entry& entry);  // the others, until it is the running fiber's turn again
  std::uint64_t draw_tie(const Fiber& fiber) { return random_ ? rng_.next() : fiber.order; }
  void push(const Entry& entry);
  Fiber& pop();
  void wait_until(const Entry& expiry);
  void wait_no_more(Fiber& fiber);
  void queue_due_expiries();  // those that may come before the first in the queue
  void set_time(Fiber& fiber, Time time);
  void activate(Fiber& fiber);
  void yield();  // the running fiber is already filed (in the queue, blocked or ended)
  void task_ended(Fiber& fiber);

  FiberPool& pool_;
  Rng rng_{0};
  bool random_ = false;
  // Ready fibers at their time, the first at the end: for the few that there are, moving some costs less than a heap.
  std::vector<Entry> queue_;
  std::vector<Entry> waiting_;  // blocked ones at their expiry, in no order: nearly all are woken before
  Time first_expiry_ = never;   // of these, or earlier than that
  std::vector<Fiber*> alive_;
  Fiber* current_ = nullptr;
  const void* exceptions_ = nullptr;  // of the thread that is in run()
  Time now_{0};
  Time limit_ = never;
  bool stop_ = false;
  std::uint64_t switches_ = 0;
};

}  // namespace firedrill::sim
