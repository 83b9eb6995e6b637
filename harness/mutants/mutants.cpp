#include "harness/mutants/mutants.h"

#include "engine/base/check.h"

namespace firedrill {

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      {"optimizer_step_reset", "a resume restores the moments but starts the optimizer's step counter at 0",
       "resume_equals_golden", &make_optimizer_step_reset},
      {"protocol_largest_directory", "a resume takes the shard directory of the largest step, complete or not",
       "partial_never_discoverable", &make_protocol_largest_directory},
      {"protocol_overwrite_in_place", "every checkpoint is written over the one before, in the same directory",
       "validated_is_kept", &make_protocol_overwrite_in_place},
      {"protocol_unsynced_files", "shards and manifest are renamed into place without a sync of the files",
       "partial_never_discoverable", &make_protocol_unsynced_files},
      {"random_state_of_rank_zero", "every rank restores the random state of rank 0", "resume_equals_golden",
       &make_random_state_of_rank_zero},
  };
  return all;
}

const Mutant* find_mutant(std::string_view name) {
  for (const Mutant& mutant : mutants()) {
    if (mutant.name == name) return &mutant;
  }
  return nullptr;
}

std::unique_ptr<Protocol> make_protocol(std::string_view mutant) {
  if (mutant.empty()) return std::make_unique<Protocol>();
  const Mutant* found = find_mutant(mutant);
  FD_CHECK(found != nullptr, "no mutant is called {}", mutant);
  return found->make();
}

std::unique_ptr<AsyncPublisher> make_publisher(std::string_view mutant) {
  const Mutant* found = mutant.empty() ? nullptr : find_mutant(mutant);
  return found && found->make_publisher ? found->make_publisher() : std::make_unique<AsyncPublisher>();
}

}  // namespace firedrill
