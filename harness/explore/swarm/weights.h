// Weights: how often each kind of fault is drawn where nobody says otherwise.
//
// The proportions follow two published accounts of large runs: Llama 3 405B (arXiv 2407.21783, table 5: of 419
// interruptions in 54 days 59 % the GPU and its memory, 13 % software, 8 % the network, 8 % unplanned maintenance of
// hosts, 1.4 % silent corruption, 0.7 % storage) and the account of a research cluster's year in arXiv 2410.21680.
// Storage and what happens in commit windows are drawn far more often than they occur: there a mistake costs the run.
//
// Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/seam/position.h"
#include "faults/spec.h"
#include "harness/scenario/weights.h"

namespace firedrill {

using KindWeights = std::array<std::uint32_t, fault_kind_count>;
using PhaseWeights = std::array<std::uint32_t, phase_count>;

// The defaults, but for the kinds that the scenario weighs itself; without those that the world does not have.
KindWeights weights_of(const std::vector<KindWeight>& own, WorldKind world);
const PhaseWeights& phase_weights();

}  // namespace firedrill
