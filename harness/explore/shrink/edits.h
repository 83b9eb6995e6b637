// Edits: how a plan can become simpler. Each edit is a pure function from a plan to simpler ones, the boldest first; it
// knows nothing of what fails, and whoever shrinks a plan tries what it gives.
//
// Every edit goes down in a measure of its own and no edit goes up in another's without bound, so that a shrinker that
// keeps on taking what they give comes to an end. What they give need not be legal: see mistakes_in(Plan).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/plan.h"

namespace firedrill {

struct Edit {
  std::string_view name;  // "fewer faults"
  std::vector<Plan> (*of)(const Plan& plan);
};

// In the order in which they are best tried: first what makes the plan smaller, then what makes it plainer.
std::span<const Edit> edits();

// One at a time, for tests and for the table.
std::vector<Plan> in_the_sim_world(const Plan& plan);
std::vector<Plan> fewer_faults(const Plan& plan);      // none, halves, each one left out
std::vector<Plan> plainer_recovery(const Plan& plan);  // no other layout, policy restart, no more budget than faults
std::vector<Plan> simpler_kinds(const Plan& plan);     // kill before all, then io_error, then the first of its family
std::vector<Plan> fewer_steps(const Plan& plan);       // of the job; faults of later steps move to the last one
std::vector<Plan> fewer_ranks(const Plan& plan);       // and a plainer layout; faults stay on ranks that there are
std::vector<Plan> plainer_job(const Plan& plan);       // all options at once, half of them, each one
std::vector<Plan> plainer_faults(const Plan& plan);    // without options, at any path, once, before the call
std::vector<Plan> earlier_faults(const Plan& plan);    // attempt, step, rank, nth: the lowest, half, one less
std::vector<Plan> faults_that_must_fire(const Plan& plan);
std::vector<Plan> plain_seed(const Plan& plan);

// What a scenario of this plan would be refused for, but for the budget and what notices silent damage, which a plan
// that is to fail need not keep.
std::vector<std::string> mistakes_in(const Plan& plan);
// The rest: whether a correct system could survive it.
std::vector<std::string> mistakes_beyond_budget(const Plan& plan);

// "2 faults (kill, io_error), 12 steps, dp=4, then dp=2": for people.
std::string size_in_words(const Plan& plan);

}  // namespace firedrill
