#include "harness/explore/swarm/options.h"

#include <algorithm>
#include <chrono>

#include "faults/budget.h"
#include "faults/operations.h"

namespace firedrill {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Duration some_milliseconds(Rng& rng) { return milliseconds(1 + static_cast<std::int64_t>(rng.below(20))); }

void draw_link(Rng& rng, const Plan& plan, FaultSpec& fault) {
  const int ranks = plan.layout_of(fault.at.attempt.value_or(1)).world_size();
  if (rng.chance(1, 2) && ranks > 1 && fault.kind != FaultKind::partition) {
    fault.peer = static_cast<int>(rng.below(static_cast<std::uint64_t>(ranks - 1)));
    if (*fault.peer >= fault.at.rank) ++*fault.peer;
  }
  if (rng.chance(1, 2)) fault.lasts = milliseconds(50);
  fault.every = 2 + static_cast<int>(rng.below(3));
}

// Saves ahead of `step` that faults can fail, each in all of its tries, in an attempt that goes on all the same.
int saves_failed_before(const Plan& plan, std::int64_t step) {
  if (plan.job.checkpoint.on_error != OnError::continue_training) return 0;
  int tries = 0;
  for (const FaultSpec& fault : plan.faults) {
    if (!fault.at.phase || !saves(*fault.at.phase) || fault.at.step.value_or(0) >= step) continue;
    tries += fault.times == 0 ? tries_a_publish * plan.job.checkpoint.failures_max : fault.times;
  }
  return tries / tries_a_publish;
}

// Saves of an attempt whose mark is sure to be on the disk when the attempt comes to `step`.
int saves_done_before(const Plan& plan, std::int64_t step) {
  int saves = -saves_failed_before(plan, step);
  for (std::int64_t at = 1; at < step; ++at) saves += save_due(at, plan.job) ? 1 : 0;
  // One that is published aside is done when the next is dispatched.
  if (plan.job.checkpoint.mode == PublishMode::async) --saves;
  return saves;
}

// How many validated checkpoints a restart is sure to find: any fault may be what ends the first attempt.
int left_by_the_first_attempt(const Plan& plan) {
  std::int64_t ends = plan.job.steps;
  for (const FaultSpec& fault : plan.faults) {
    if (fault.at.attempt.value_or(1) == 1) ends = std::min(ends, fault.at.step.value_or(0));
  }
  return std::min(saves_done_before(plan, ends), plan.job.checkpoint.keep_validated);
}

// How many of these can be damaged later, each by another attempt. What attempts save in between is not counted: they
// may end before.
int damaged_behind_restarts(const std::vector<FaultSpec>& faults) {
  int damaged = 0;
  for (const FaultSpec& fault : faults) {
    const bool rests = info_of(fault.kind).harm == Harm::rest_damaged;
    if (rests && fault.at.attempt.value_or(1) > 1) damaged += fault.times;
  }
  return damaged;
}

}  // namespace

void draw_target(Rng& rng, FaultSpec& fault) {
  fault.target = static_cast<Target>(rng.below(4));
  // Without its manifest nothing can be told of a checkpoint.
  if (fault.kind == FaultKind::file_vanishes) fault.at.path = "shards/*";
}

void draw_options(Rng& rng, const Plan& plan, FaultSpec& fault) {
  if (info_of(fault.kind).has_after && rng.chance(1, 2)) fault.at.when = When::after;
  switch (fault.kind) {
    case FaultKind::kill_node:
      fault.lose_unsynced_data = rng.chance(1, 2);
      fault.lose_unsynced_names = rng.chance(1, 2);
      break;
    case FaultKind::torn_write: fault.lost = static_cast<Part>(rng.below(3)); break;
    case FaultKind::misdirected_write:
      if (rng.chance(1, 3)) fault.lands_in = Landing::file;
      break;
    case FaultKind::io_error:
    case FaultKind::no_space:
      if (rng.chance(1, 6)) fault.times = 3;  // every try of a publish
      break;
    case FaultKind::exit: fault.code = static_cast<int>(rng.below(3)); break;
    case FaultKind::slow:
      fault.times = 1 + static_cast<int>(rng.below(8));
      fault.delay = some_milliseconds(rng);
      break;
    case FaultKind::slow_disk:
    case FaultKind::slow_shard:
    case FaultKind::delay_message: fault.delay = some_milliseconds(rng); break;
    case FaultKind::slow_link:
    case FaultKind::flaky_link:
      fault.delay = some_milliseconds(rng);
      draw_link(rng, plan, fault);
      break;
    case FaultKind::partition:
      fault.one_way = rng.chance(1, 3);
      draw_link(rng, plan, fault);
      break;
    case FaultKind::late_visibility: fault.looks = 1 + static_cast<int>(rng.below(3)); break;
    case FaultKind::clock_skew: (rng.chance(1, 2) ? fault.ahead : fault.behind) = hours(1); break;
    case FaultKind::corrupt_payload: fault.damage = static_cast<PayloadDamage>(rng.below(3)); break;
    default: break;
  }
}

bool hits_the_only_checkpoint(const Plan& plan, const FaultSpec& fault) {
  const Harm harm = info_of(fault.kind).harm;
  // The first save that is damaged in silence and whose attempt dies before it is read back.
  if (harm == Harm::write_damaged) return saves_done_before(plan, fault.at.step.value_or(0)) < 1;
  if (harm != Harm::rest_damaged) return false;
  if (fault.at.attempt.value_or(1) > 1) return damaged_behind_restarts(plan.faults) >= left_by_the_first_attempt(plan);
  // The attempt may end before it reads back what it has just written.
  const bool older = saves_done_before(plan, fault.at.step.value_or(0)) >= 1;
  return !older || fault.at.phase != Phase::validate || fault.at.when == When::after;
}

}  // namespace firedrill
