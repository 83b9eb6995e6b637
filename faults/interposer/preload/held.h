// A reorder: the call that it hits is kept back and made after the next one on its communicator. It fires only if that
// next call comes at once. Where the program waits in between, uses the stream otherwise, turns to another
// communicator, begins or ends a group, or does nothing for too long, the call is made then, late but in its order, and
// the fault is reported as not fired: kept back any longer it would be a hang or a wrong result, not a reorder.
// Threads: any. A lock guards the kept call; no function of NCCL is called with it.
#pragma once

#include <atomic>
#include <chrono>

#include "faults/interposer/preload/calls.h"

namespace firedrill::interposer {

extern std::atomic<bool> held_flag;
inline bool call_is_held() noexcept { return held_flag.load(std::memory_order_acquire); }

// Keeps the call back, for at most `time`, and reports success; or makes it if waits cannot be seen.
ncclResult_t hold_back(const Numbered& numbered, std::chrono::nanoseconds time) noexcept;
// Makes this call and then the kept one, or the kept one alone where this is not the call that it waits for. Returns
// whether it made this one, with its result.
bool make_before_held_call(const Numbered& next, ncclResult_t& result) noexcept;
// Makes the kept call, if there is one; the fault has not fired.
void release_held_call(Reason reason, const char* detail) noexcept;
// How a call of the CUDA runtime concerns the kept one.
enum class Use : unsigned char {
  work,    // put into a stream: if that is the kept call's, or the default stream, which orders itself with others
  wait,    // of a thread for a stream or an event: if the thread made the kept call, or the stream is its
  device,  // for everything
};
// Makes the kept call first if it is concerned.
void program_uses(const char* function, cudaStream_t stream, Use use) noexcept;
// The thread asks whether a communicator has failed, which is how a program polls.
void program_asks() noexcept;
// A group begins, or ends, in this thread.
void group_boundary(bool begins) noexcept;
// Drops it unmade; with a reason it is reported.
void forget_held_call(Reason reason = Reason::none) noexcept;

}  // namespace firedrill::interposer
