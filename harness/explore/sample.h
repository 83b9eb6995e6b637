// Sampling: what is looked at where no engine can finish. Systematic first: everything durable up to each operation
// (the prefixes of the recorded order); each single loss in each prefix; each pair of losses; then random states, drawn
// cell by cell. States that the profile does not allow are skipped. Words say how far it came; it is never complete.
//
// Threads: one. What it does not do: notice that two samples are the same state, so nothing counts as covered by it.
#pragma once

#include <string>

#include "harness/explore/explore.h"

namespace firedrill {

struct Sampling {
  Exploration exploration;
  std::string words;
};

struct SampleOptions {
  std::uint64_t seed = 1;
  double seconds = 20.0;  // for the whole; random states get a fifth of it
  int losses_max = 2;
  bool random = true;
};

Sampling sample_states(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& options,
                       const SampleOptions& sample = {});

}  // namespace firedrill
