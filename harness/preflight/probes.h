// The probes by name: each is a function that a rank of a team runs, and that gives what it measured. All ranks of a
// team run the same one, and meet (RankLine::meet) equally often, whatever goes wrong on one of them.
#pragma once

#include <exception>
#include <utility>

#include "harness/preflight/rank.h"

namespace firedrill::preflight {

// What was to be measured does not work at all: a finding. Every other exception is a mistake of ours.
class ProbeFailed : public std::exception {
 public:
  explicit ProbeFailed(ProbeFailure failure) : failure_(std::move(failure)) {}
  const ProbeFailure& failure() const { return failure_; }
  const char* what() const noexcept override { return failure_.why.c_str(); }

 private:
  ProbeFailure failure_;
};

// Of ranks that do not reach each other.
ProbeFailed no_exchange(const Error& error);

Json probe_exchange(const Probe& probe);
Json probe_look(const Probe& probe);  // whether `directory` can be meant: to restore from, or to write to
Json probe_machine(const Probe& probe);
Json probe_removal(const Probe& probe);
Json probe_restore(const Probe& probe);
Json probe_storage(const Probe& probe);
Json probe_straggler(const Probe& probe);

}  // namespace firedrill::preflight
