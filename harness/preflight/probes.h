// The probes by name: each is a function that a rank of a team runs, and that gives what it measured. All ranks of a
// team run the same one, and meet (RankLine::meet) equally often, whatever goes wrong on one of them.
#pragma once

#include <stdexcept>

#include "harness/preflight/rank.h"

namespace firedrill::preflight {

// What was to be measured does not work at all: a finding. Every other exception is a mistake of ours.
class ProbeFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Json probe_exchange(const Probe& probe);
Json probe_machine(const Probe& probe);
Json probe_restore(const Probe& probe);
Json probe_storage(const Probe& probe);
Json probe_straggler(const Probe& probe);

}  // namespace firedrill::preflight
