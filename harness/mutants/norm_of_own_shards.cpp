// A rank whose gradients lie in shards takes the norm of its own ones for that of the model, so every rank clips by
// another factor.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class NormOfOwnShards final : public TrainingRules {
 public:
  bool norm_spans_shards() const override { return false; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_norm_of_own_shards() { return std::make_unique<NormOfOwnShards>(); }

}  // namespace firedrill
