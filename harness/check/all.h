// The function of each property, for the list in properties.cpp and for tests. What each verifies, and what it does
// not, stands at the head of its file.
#pragma once

#include "harness/check/property.h"

namespace firedrill {

Verdict judge_resume_equals_golden(const Case& run);
Verdict judge_partial_never_discoverable(const Case& run);
Verdict judge_acknowledged_is_durable(const Case& run);
Verdict judge_one_provenance(const Case& run);
Verdict judge_ranks_restore_the_same(const Case& run);
Verdict judge_replicas_agree(const Case& run);
Verdict judge_samples_exactly_once(const Case& run);
Verdict judge_no_silent_restart(const Case& run);
Verdict judge_nothing_from_an_old_attempt(const Case& run);
Verdict judge_validated_is_kept(const Case& run);
Verdict judge_errors_reach_the_job(const Case& run);
Verdict judge_collectives_agree(const Case& run);
Verdict judge_failures_are_attributed(const Case& run);
Verdict judge_failure_detected_in_time(const Case& run);
Verdict judge_faults_fired(const Case& run);

}  // namespace firedrill
