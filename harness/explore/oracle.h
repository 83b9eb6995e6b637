// Oracle: what a recovery owes after a crash. The newest checkpoint whose success had been reported to the job, or a
// newer one, whole: restored by all ranks, equal to the golden of its step. Where nothing had been acknowledged a start
// from step 0 is right, if nothing is listed; an error is never right, since nobody could go on without a person.
//
// Pure. What it does not ask: whether the engine had called a newer one committed; its rename is the commit, and what
// is whole and equal to the golden is no mixture.
#pragma once

#include <optional>
#include <string>

#include "engine/seam/checkpoint_id.h"
#include "harness/explore/restore_check.h"

namespace firedrill {

// Empty: right. Else what is wrong, in words.
std::string violation_of(const CheckAnswer& answer, const std::optional<CheckpointId>& required);

}  // namespace firedrill
