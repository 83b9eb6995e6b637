// Second loss: the power fails, a new attempt recovers, and the power fails again. For each content that the first loss
// may leave (one for each leaf of the lazy engine) the recovery is recorded, and becomes a trace of its own whose base
// is that content. What the leaf leaves open has some legal value in that base, and is noted in the case as unread: a
// second recovery that reads it would see one of several possibilities only, and fails the check.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "harness/explore/crashcheck.h"

namespace firedrill {

// What the first loss left, as far as the recovery reads it.
struct FirstLoss {
  std::vector<std::pair<crash::CellId, crash::ValueIndex>> assignment;
  std::optional<CheckpointId> required;

  static FirstLoss of(crash::Partial& leaf);
};

// What `subject`'s attempt does on that content: claim, find, settle, record what it accepts, restore, mark.
Result<CrashCase> recovery_after(const crash::CrashSpace& space, const CheckSubject& subject, const FirstLoss& loss);

// All that a content holds, as the base of a trace.
std::vector<crash::BaseEntry> base_of(DiskContent& content);

}  // namespace firedrill
