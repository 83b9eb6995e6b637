// A rank that finds its rows damaged skips backward and goes on to the next batch, and with it skips the exchanges that
// its peers wait in.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class BadRowsSkippedAlone final : public TrainingRules {
 public:
  bool skips_bad_rows() const override { return true; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_bad_rows_skipped_alone() { return std::make_unique<BadRowsSkippedAlone>(); }

}  // namespace firedrill
