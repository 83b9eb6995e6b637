// What `firedrill mutants` found, in words and in JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/explore/shrink/shrink.h"
#include "harness/report/report.h"
#include "harness/run/canaries.h"
#include "harness/run/hunt.h"

namespace firedrill {

// What one hunt gave.
struct HuntOutcome {
  const Mutant* mutant = nullptr;  // nullptr: the right engine
  std::string_view beside;         // of the right engine: a mutant that is hunted on the same ground
  Hunt hunt;
  std::optional<Shrunk> shrunk;  // what caught it, made simple
  std::string error;             // of the harness: nothing else counts then

  std::string name() const { return mutant == nullptr ? "right_engine" : std::string(mutant->name); }
};

// Each adds its lines and its part of the JSON, and returns the exit code that it asks for.
int add_control(Report& report, const HuntOutcome& control);
int add_mutant(Report& report, const HuntOutcome& outcome, const std::string& reproduce);
int add_canary(Report& report, const Canary& canary);
// How many were killed, and the medians over those: `median {trials, seconds, shrunk_faults, shrink_seconds}`.
void add_summary(Report& report, const std::vector<HuntOutcome>& outcomes);

}  // namespace firedrill
