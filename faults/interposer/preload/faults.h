// The plan's faults at work in this process: which call each one hits, and what it then does. A firing is journaled (a
// line of faults.jsonl, and an entry of the ring) before it takes effect.
// Threads: any. Asking whether a fault hits takes no lock and allocates nothing; a fault that fires calls the system.
#pragma once

#include <cstdint>

#include "faults/interposer/preload/calls.h"

namespace firedrill::interposer {

// Opens FOLDER/faults.jsonl if the plan has faults.
void open_journal() noexcept;
// Decides which faults can fire in this process: those of its attempt that the journal does not show as used up.
void arm_faults() noexcept;

// The fault that hits this call, or `unknown`. Counts the call for every fault that it matches.
std::int32_t fault_for(const Numbered& numbered) noexcept;
// Makes a call that a fault hits, or that follows one which is kept back.
ncclResult_t disturb(const Numbered& numbered) noexcept;

struct JournalLine {
  std::int32_t fault = 0;
  FaultEvent event = FaultEvent::fired;
  Reason reason = Reason::none;
  const char* detail = "";  // no quotes or control characters
  const Numbered* call = nullptr;
};
void journal(const JournalLine& line) noexcept;

// At the end of the program: faults of ranks that were here and have not fired.
void report_unfired() noexcept;

}  // namespace firedrill::interposer
