// The loss scale is saved, and the count of good steps since it last changed is not: it grows too late after a resume.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class ScalerGrowthReset final : public Protocol {
 protected:
  Status restored(const CheckpointContext&, const FindResult&, StateView& state) override {
    change_number(state, "scaler.growth_tracker", [](std::int64_t) { return 0; });
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_scaler_growth_reset() { return std::make_unique<ScalerGrowthReset>(); }

}  // namespace firedrill
