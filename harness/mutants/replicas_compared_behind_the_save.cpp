// Replicas are compared when the snapshot is published already: a difference ends the attempt, and the next one resumes
// from what was wrong.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class ReplicasComparedBehindTheSave final : public TrainingRules {
 public:
  bool compares_replicas_before_saving() const override { return false; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_replicas_compared_behind_the_save() {
  return std::make_unique<ReplicasComparedBehindTheSave>();
}

}  // namespace firedrill
