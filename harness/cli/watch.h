// Watch: the events of a run as lines with glyphs, as they come into its history. Threads: one session's.
#pragma once

#include <functional>
#include <iosfwd>

#include "harness/history/history.h"

namespace firedrill {

// For SessionOptions::watch. `out` must outlive it.
std::function<void(const History&, const Event&)> watch_on(std::ostream& out);

}  // namespace firedrill
