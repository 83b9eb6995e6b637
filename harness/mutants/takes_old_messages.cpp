// A message is taken by its sender and its tag alone: one of an old attempt that comes late is taken by a new one.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class TakesOldMessages final : public TrainingRules {
 public:
  bool takes_message(int, int) const override { return true; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_takes_old_messages() { return std::make_unique<TakesOldMessages>(); }

}  // namespace firedrill
