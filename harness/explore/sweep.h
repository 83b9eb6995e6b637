// Sweep: one more fault in a run, at the 1st, 2nd, 3rd ... position it can hit, until it no longer fires.
//
// A position is one file operation of one rank in one phase of one step of one attempt (and, where that matters, before
// or after it), with each variant of the kind's options. Positions are not learned beforehand: within a group, which is
// (variant, attempt, rank, phase, step), the n-th operation is hit for n = 1, 2, ... until nothing fires any more. All
// that the run does before the fault fires is what it does without it, so this covers every position there is, if the
// groups cover the run without the fault (operations_missed). Kinds that can hit any call of any seam are taken at file
// operations only: the disk does not change between them.
//
// Threads: a group belongs to one thread and its Session; groups are independent. Sim world only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace firedrill {

struct SweepOptions {
  FaultKind kind = FaultKind::kill;
  int times = 1;                   // of the fault: 0 is sticky within its attempt
  std::int64_t limit = 1'000'000;  // positions in one group; reached, the sweep is incomplete
};

// The scenario's plan without its own faults of the kind, ready for one fault more: nothing need fire, and there is one
// restart more.
Plan sweep_base(Plan plan, FaultKind kind);

// The groups, each as its fault with nth 1. `attempts`: of the run without the fault.
std::vector<FaultSpec> sweep_groups(const Plan& base, const SweepOptions& options, int attempts);

// The file operations that the run without the fault really makes, that the kind can be about, and that no group can
// hit: each as "rank 0, attempt 1, step 2, retire: remove", each place once. Empty: the groups cover the run. They are
// made from a table of what the engine does (faults/operations.h), and this holds the table against the engine.
// Errors: what the session says.
Result<std::vector<std::string>> operations_missed(Session& session, const Plan& base, const SweepOptions& options,
                                                   const std::vector<FaultSpec>& groups);

// Why no system can pass; empty: the sweep makes sense.
std::vector<std::string> mistakes_in_sweep(const Plan& base, const std::vector<FaultSpec>& groups);

// What one trial showed beside its verdict, told from its history.
enum class SweepOutcome : std::uint8_t {
  went_on,       // as if nothing had been
  saved_again,   // a try or a publish failed, and the attempt went on
  restarted,     // the attempt ended, and the next one went on
  stepped_back,  // damage was found, and an older checkpoint was taken
};
std::string_view to_string(SweepOutcome outcome);

struct SweepFailure {
  Plan plan;
  RunVerdict verdict = RunVerdict::unknown;
  std::string property;
  std::string evidence;
};

struct SweptGroup {
  std::int64_t positions = 0;
  std::map<SweepOutcome, std::int64_t> outcomes;  // of the trials that passed
  std::vector<SweepFailure> failures;
  bool complete = false;  // the last n fired no more
};
// Errors: what the session says.
Result<SweptGroup> sweep_group(Session& session, const Plan& base, const FaultSpec& group, const SweepOptions& options);

}  // namespace firedrill
