#include "harness/check/properties.h"

#include <array>
#include <exception>

#include "harness/check/all.h"

namespace firedrill {
namespace {

constexpr std::array<Property, 15> all = {{
    {"resume_equals_golden", "every state of the run equals the undisturbed run's of the same step, bit for bit",
     judge_resume_equals_golden},
    {"partial_never_discoverable", "what discovery finds, after any operation and in any view, is whole and right",
     judge_partial_never_discoverable},
    {"acknowledged_is_durable", "a save that was reported as done is never lost", judge_acknowledged_is_durable},
    {"one_provenance", "a checkpoint's shards and manifest are of one run, job, step, attempt and try",
     judge_one_provenance},
    {"ranks_restore_the_same", "all ranks of an attempt resume from the same checkpoint and the same values",
     judge_ranks_restore_the_same},
    {"replicas_agree", "ranks that hold the same parameters, moments or counters hold the same bits",
     judge_replicas_agree},
    {"samples_exactly_once", "each step consumes the samples it must, and no epoch repeats or leaves out one",
     judge_samples_exactly_once},
    {"no_silent_restart", "training starts from step 0 only when nothing was ever saved", judge_no_silent_restart},
    {"nothing_from_an_old_attempt", "no write and no message of an attempt takes effect in a later one",
     judge_nothing_from_an_old_attempt},
    {"validated_is_kept", "the newest validated checkpoints stay whole on the disk", judge_validated_is_kept},
    {"errors_reach_the_job", "a failed operation is reported, and nothing is committed on top of it",
     judge_errors_reach_the_job},
    {"collectives_agree", "the members of a group issue the same collective calls in the same order",
     judge_collectives_agree},
    {"failures_are_attributed", "who is blamed for a failed attempt is who was disturbed",
     judge_failures_are_attributed},
    {"failure_detected_in_time", "a rank that cannot go on is noticed within its bound, and nobody else is blamed",
     judge_failure_detected_in_time},
    {"faults_fired", "every planned fault took effect", judge_faults_fired},
}};

}  // namespace

std::span<const Property> properties() { return all; }

const Property* find_property(std::string_view name) {
  for (const Property& property : all) {
    if (property.name == name) return &property;
  }
  return nullptr;
}

Verdict judge(const Property& property, const Case& run) {
  try {
    return property.judge(run);
  } catch (const std::exception& thrown) {
    return Verdict::unknown(0, std::string("the property itself failed: ") + thrown.what());
  } catch (...) {
    return Verdict::unknown(0, "the property itself failed");
  }
}

std::vector<Judged> judge_all(const Case& run) {
  std::vector<Judged> judged;
  judged.reserve(all.size());
  for (const Property& property : all) judged.push_back({&property, judge(property, run)});
  return judged;
}

Outcome overall(std::span<const Judged> judged) {
  Outcome worst = Outcome::pass;
  for (const Judged& one : judged) {
    if (one.verdict.outcome == Outcome::fail) return Outcome::fail;
    if (one.verdict.outcome == Outcome::unknown) worst = Outcome::unknown;
  }
  return worst;
}

}  // namespace firedrill
