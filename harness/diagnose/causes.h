// What can hold a run up, one function for each place to look at, in the order of diagnosis. Pure functions of figures.
#pragma once

#include <vector>

#include "harness/diagnose/diagnose.h"

namespace firedrill {

// Ranks whose parts of a step stand out among those that do the same work; input that holds up all of them.
std::vector<Cause> slow_ranks(const Figures& figures);
std::vector<Cause> unbalanced_stages(const Figures& figures);
std::vector<Cause> slow_links(const Figures& figures);
// Gradients in so many small calls that each costs its latency.
std::vector<Cause> small_buckets(const Figures& figures);
// tp and cp groups that lie on several nodes.
std::vector<Cause> spread_groups(const Figures& figures);
// Parts that all ranks spend more on than in the other run.
std::vector<Cause> grown_parts(const Figures& figures, const Figures& against);

// What a pipeline stage has to do in forward and backward by its layers, embedding and head: in the sim world the time
// that the job gives for them, between processes multiplications of a token. Only good for a ratio of two stages.
double expected_work(const Plan& plan, int stage);

// How many times as long; of a normal of 0 nanoseconds as of 1.
double ratio_of(std::int64_t value, std::int64_t normal);
// Whether `whole` would be shorter enough without `cost`.
bool counts(std::int64_t cost, std::int64_t whole);

// What is less than this beside the normal cannot be told from a scheduler's doing, where processes share their cores.
struct Floors {
  std::int64_t part = 0;            // of a step
  std::int64_t file_operation = 0;  // one
  std::int64_t message = 0;         // one
};
Floors floors_of(const Plan& plan);

// The size of a message of which half the time is latency: below it, smaller messages are no faster.
std::int64_t half_speed_bytes(const Plan& plan);

}  // namespace firedrill
