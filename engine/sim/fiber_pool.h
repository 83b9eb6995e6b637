// Fibers with pooled stacks: coroutines of Boost.Context that outlive their tasks, so that a trial pays neither mmap
// nor page faults. The pool outlives many schedulers and trials.
//
// Threads: a pool and all that uses it belong to one thread; one scheduler at a time. Errors: none; wrong use fails a
// check. A stack overflow hits a protected page and ends the program. Under AddressSanitizer each switch is announced
// to it.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/seam/clock.h"

namespace firedrill::sim {

inline constexpr Time never = Time::max();

// What a blocked fiber waits for; only read for messages.
struct WaitFor {
  const char* what = "";  // "a message from rank {0} with tag {1}", "the key '{2}'"
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::string_view text = {};  // valid while the fiber is blocked
};

enum class FiberState : std::uint8_t { idle, ready, running, blocked };

// Where the scheduler has filed a fiber: among the ready ones, or among those that wait and may expire.
enum class Filed : std::uint8_t { nowhere, queued, waiting };

// One fiber. The scheduler keeps its book-keeping here; everybody else holds a reference and looks at nothing.
struct Fiber {
  boost::context::fiber context;
  std::function<void()> task;
  FiberState state = FiberState::idle;
  Time time{0};           // when it goes on
  std::uint64_t tie = 0;  // who is first among equals
  Time expiry = never;    // blocked: when it gives up waiting
  bool notified = false;  // blocked: it was woken and only waits for its time
  Filed filed = Filed::nowhere;
  std::size_t place = 0;  // among those that wait
  WaitFor waits_for;
  int rank = -1;  // for messages
  std::string name;
  std::uint64_t order = 0;
  bool quits = false;
  // For AddressSanitizer.
  const void* stack_bottom = nullptr;
  std::size_t stack_size = 0;
  void* fake_stack = nullptr;
};

struct FiberPoolOptions {
  std::size_t stack_size = 256 * 1024;  // bytes, at most 1 MiB; autograd needs the full one
};

class FiberPool {
 public:
  explicit FiberPool(const FiberPoolOptions& options = {});
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // An idle fiber; it goes back with the end of its task.
  Fiber& take();
  // Leaves the running fiber (or the thread's own stack) and goes on in `to`.
  void switch_to(Fiber& to);
  // The thread's own stack.
  Fiber& outside() { return outside_; }
  Fiber& running() { return *running_; }
  // Called on a fiber whenever its task has ended; must switch away. Set by the scheduler that uses the pool now.
  void on_task_end(std::function<void(Fiber&)> callback) { task_ended_ = std::move(callback); }
  std::size_t size() const { return fibers_.size(); }

 private:
  void loop(Fiber& self);
  void start(Fiber& fiber);
  void before_switch(Fiber& from, const Fiber& to, bool ends);
  void after_switch(Fiber& self);

  FiberPoolOptions options_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> idle_;
  Fiber outside_;
  Fiber* running_ = &outside_;
  Fiber* came_from_ = nullptr;
  std::function<void(Fiber&)> task_ended_;
};

}  // namespace firedrill::sim
