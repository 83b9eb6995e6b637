#include "faults/interposer/preload/held.h"

#include <pthread.h>
#include <time.h>

#include <cerrno>
#include <csignal>

#include "faults/interposer/preload/faults.h"
#include "faults/interposer/preload/process.h"
#include "faults/interposer/preload/real.h"

namespace firedrill::interposer {

constinit std::atomic<bool> held_flag{false};

namespace {

struct Held {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Numbered call;
  std::uint32_t thread = 0;
  std::uint64_t group = 0;
  std::uint64_t generation = 0;  // of holding: a timer that comes late finds another one
};
constinit Held held;

// Whoever takes it makes it.
bool take(Held& out, std::uint64_t generation = 0) {
  ::pthread_mutex_lock(&held.mutex);
  const bool there = held_flag.load() && (generation == 0 || generation == held.generation);
  if (there) {
    out.call = held.call;
    out.thread = held.thread;
    out.group = held.group;
    held_flag.store(false, std::memory_order_release);
  }
  ::pthread_mutex_unlock(&held.mutex);
  return there;
}

void give_back_unfired(const Held& taken, Reason reason, const char* detail) {
  journal({.fault = taken.call.fault,
           .event = FaultEvent::not_fired,
           .reason = reason,
           .detail = detail,
           .call = &taken.call});
  make_and_record(taken.call);
}

struct Timer {
  std::chrono::nanoseconds time;
  std::uint64_t generation;
};

void* run_timer(void* data) {
  const Timer timer = *static_cast<Timer*>(data);
  delete static_cast<Timer*>(data);
  timespec left{.tv_sec = timer.time.count() / 1'000'000'000, .tv_nsec = timer.time.count() % 1'000'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  Held taken;
  if (take(taken, timer.generation)) give_back_unfired(taken, Reason::nothing_followed, "");
  return nullptr;
}

// Without it a program that waits in a way that cannot be seen (for another process, say) would wait for ever.
bool start_timer(std::chrono::nanoseconds time, std::uint64_t generation) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signal handlers are for its own threads
  pthread_t thread{};
  auto* timer = new Timer{time, generation};
  const bool started = ::pthread_create(&thread, nullptr, run_timer, timer) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) ::pthread_detach(thread);
  if (!started) delete timer;
  return started;
}

}  // namespace

ncclResult_t hold_back(const Numbered& numbered, std::chrono::nanoseconds time) noexcept {
  if (!find_real("cudaStreamSynchronize", Library::cudart)) {
    journal({.fault = numbered.fault,
             .event = FaultEvent::not_fired,
             .reason = Reason::waits_out_of_sight,
             .call = &numbered});
    return make_and_record(numbered);
  }
  journal({.fault = numbered.fault, .event = FaultEvent::held, .call = &numbered});
  const Thread& me = this_thread();
  ::pthread_mutex_lock(&held.mutex);
  held.call = numbered;
  held.thread = me.id;
  held.group = me.group;
  const std::uint64_t generation = ++held.generation;
  held_flag.store(true, std::memory_order_release);
  ::pthread_mutex_unlock(&held.mutex);
  // In a group nothing is waited for before its end, which releases the call on the thread that the group belongs to.
  if (me.group == 0 && !start_timer(time, generation)) release_held_call(Reason::nothing_followed, "no timer thread");
  return ncclSuccess;
}

bool make_before_held_call(const Numbered& next, ncclResult_t& result) noexcept {
  Held taken;
  if (!take(taken)) return false;
  const Numbered& kept = taken.call;
  if (kept.call.comm != next.call.comm) {
    give_back_unfired(taken, Reason::other_communicator, to_string(next.call.op).data());
    return false;
  }
  if (taken.group != this_thread().group) {
    give_back_unfired(taken, Reason::group_boundary, "");
    return false;
  }
  journal({.fault = kept.fault, .call = &kept});
  result = make_and_record(next);
  const ncclResult_t late = make_and_record(kept);
  if (result == ncclSuccess) result = late;
  return true;
}

void release_held_call(Reason reason, const char* detail) noexcept {
  Held taken;
  if (call_is_held() && take(taken)) give_back_unfired(taken, reason, detail);
}

namespace {

// Takes the call if `concerned` says so of it, and makes it.
template <class Concerned>
void release_if(const Concerned& concerned, Reason reason, const char* detail) {
  ::pthread_mutex_lock(&held.mutex);
  const bool is = concerned(held);
  const std::uint64_t generation = held.generation;
  ::pthread_mutex_unlock(&held.mutex);
  Held taken;
  if (is && take(taken, generation)) give_back_unfired(taken, reason, detail);
}

}  // namespace

void program_uses(const char* function, cudaStream_t stream, Use use) noexcept {
  const Thread& me = this_thread();
  if (me.inside != 0) return;
  const auto concerned = [&](const Held& h) {
    const cudaStream_t kept = h.call.call.stream;
    if (use == Use::device || stream == kept) return true;
    return use == Use::wait ? h.thread == me.id : !stream || !kept;
  };
  release_if(concerned, Reason::program_waited, function);
}

void program_asks() noexcept {
  const std::uint32_t me = this_thread().id;
  release_if([&](const Held& h) { return h.thread == me; }, Reason::program_waited, "ncclCommGetAsyncError");
}

void group_boundary(bool begins) noexcept {
  const Thread& me = this_thread();
  if (me.group_depth != (begins ? 0 : 1) || !call_is_held()) return;
  release_if([&](const Held& h) { return h.thread == me.id; }, Reason::group_boundary,
             begins ? "group start" : "group end");
}

void forget_held_call(Reason reason) noexcept {
  if (reason == Reason::none) {  // in the child of a fork, where the lock's owner may not be
    held.mutex = PTHREAD_MUTEX_INITIALIZER;
    held_flag.store(false);
    return;
  }
  Held taken;
  if (!call_is_held() || !take(taken)) return;
  journal({.fault = taken.call.fault,
           .event = FaultEvent::not_fired,
           .reason = reason,
           .detail = "the call that was kept back was never made",
           .call = &taken.call});
}

}  // namespace firedrill::interposer
