// Trace: a history as a Perfetto trace, which https://ui.perfetto.dev opens. A track for each rank with a slice for
// each phase of a step, a counter of the bytes it held, instants for faults, endings and checkpoints; a track for the
// supervisor with a slice for each attempt. Format: protos/perfetto/trace/trace.proto of google/perfetto, by an encoder
// of our own.
//
// A rank tells once a step how long it was in each phase, not when. So the slices of a step have exact lengths and lie
// in the order of the phases, up to the moment it told; of each rank and phase they add up to the history's time_spent.
// What a second task of the rank did at the same time lies on a track of its own.
//
// Threads: pure function. Errors: none.
#pragma once

#include <string>

#include "harness/history/history.h"

namespace firedrill {

// `title`: of the run, as the name of the traced process.
std::string to_perfetto(const History& history, const std::string& title);

}  // namespace firedrill
