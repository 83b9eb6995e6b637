// Recording: one run of a plan in the sim world, as a trace.
#pragma once

#include <vector>

#include "faults/persistence/trace.h"
#include "harness/explore/subject.h"

namespace firedrill {

struct RecordedRun {
  crash::Trace trace;
  int attempts = 0;
  bool finished = false;
  std::string why;  // it did not finish
};

// Runs `plan` (the subject's own, perhaps with other faults) from an empty disk, with another protocol than the plan's
// if one is given. Errors: of the world.
Result<RecordedRun> record_run(const ExploreSubject& subject, const Plan& plan, const ProtocolFactory& protocol = {});

// Operations that have happened before the power may fail: those of earlier attempts, and in this attempt those of
// earlier steps.
std::vector<crash::OperationId> operations_before(const crash::Trace& trace, int attempt, std::int64_t step);

// The trace without these operations: what they did is its base. They must be all that happened before the others.
crash::Trace settled(const crash::Trace& trace, const std::vector<crash::OperationId>& before);

// One kill behind each operation of the disk that attempt `attempt` does from `step` on, in the recorded order.
// It counts what is recorded. A fault counts failed operations and closes of files that were only read, too: in phases
// that have such ones (find) a kill hits behind an earlier operation than the one it was made for.
std::vector<FaultSpec> kills_behind_each(const crash::Trace& trace, int attempt, std::int64_t step);

}  // namespace firedrill
