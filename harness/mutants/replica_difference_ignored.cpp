// Replicas are compared, and training goes on whatever comes out: one replica's weights drift unnoticed.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class ReplicaDifferenceIgnored final : public TrainingRules {
 public:
  bool ends_on_different_replicas() const override { return false; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_replica_difference_ignored() {
  return std::make_unique<ReplicaDifferenceIgnored>();
}

}  // namespace firedrill
