// The state of the interposed process: its settings, plan, ring and journal. There is one by nature, since a preloaded
// library lives in a program that knows nothing of it; nothing else of Firedrill links this.
//
// The environment is read once, before the program's main: FIREDRILL_PLAN (faults), FIREDRILL_NCCL_DIR (folder of rings
// and journal), FIREDRILL_NCCL_RING (entries), FIREDRILL_RANK or the launcher's variable (rank in the job),
// FIREDRILL_ATTEMPT or the launcher's. What is wrong there ends the program with a message and exit 1, for it would run
// undisturbed otherwise. The ring is made at the first call of NCCL; a fork begins anew.
// Threads: any. After start-up nothing here allocates or locks.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "faults/interposer/nccl_plan.h"
#include "faults/interposer/ring.h"

namespace firedrill::interposer {

struct Process {
  pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;  // of the ring, and of entries in the table of communicators
  std::atomic<bool> ready{false};                      // the ring is there
  Ring ring;
  const NcclPlan* plan = nullptr;         // never freed: threads may outlive main
  const RingOptions* options = nullptr;   // as above
  std::atomic<std::uint64_t> active{0};   // a bit for each fault that can fire in this process
  std::atomic<std::uint64_t> groups{0};   // begun
  std::atomic<std::uint64_t> cliques{0};  // made by ncclCommInitAll
  int journal = -1;                       // descriptor of faults.jsonl
};
Process& process() noexcept;

struct Thread {
  int inside = 0;  // in a real function: what it calls in turn is NCCL's own business
  int group_depth = 0;
  std::uint64_t group = 0;
  std::uint32_t id = 0;
  CommSlot* last = nullptr;  // communicator of the call before
};
Thread& this_thread() noexcept;

// Marks that the thread is in a real function.
class Inside {
 public:
  Inside() noexcept : thread_(this_thread()) { ++thread_.inside; }
  ~Inside() { --thread_.inside; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Thread& thread_;
};

void start_slowly() noexcept;
// Called first by every wrapper that records.
inline void start() noexcept {
  if (!process().ready.load(std::memory_order_acquire)) [[unlikely]]
    start_slowly();
}

// Prints, and ends the process with exit 1 at once.
[[noreturn]] void give_up(const char* message) noexcept;

}  // namespace firedrill::interposer
