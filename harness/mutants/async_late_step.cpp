// The publisher asks the trainer which step it is when it gets to work, and the trainer has gone on by then.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class LateStep final : public AsyncPublisher {
 protected:
  Result<Publication> publish(std::int64_t, const StateView& snapshot, const Digest& state_digest) override {
    return AsyncPublisher::publish(main_parts().position.step, snapshot, state_digest);
  }
};

}  // namespace

std::unique_ptr<AsyncPublisher> make_async_late_step_publisher() { return std::make_unique<LateStep>(); }

}  // namespace firedrill
