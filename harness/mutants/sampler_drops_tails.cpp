// Data is dealt to the ranks first, and each drops what does not fill its last batch: the uneven end of every epoch is
// never seen.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class SamplerDropsTails final : public TrainingRules {
 public:
  bool draws_short_batch() const override { return false; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_sampler_drops_tails() { return std::make_unique<SamplerDropsTails>(); }

}  // namespace firedrill
