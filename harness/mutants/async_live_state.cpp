// The publisher keeps a reference to the live state instead of a snapshot, and reads it when it has seen that the disk
// has room: on a slow disk that is steps later.
#include <algorithm>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class LiveState final : public AsyncPublisher {
 public:
  Status dispatch(std::int64_t step, const StateView& state, const Digest& state_digest) override {
    live_ = &state;
    return AsyncPublisher::dispatch(step, state, state_digest);
  }

 protected:
  Result<Publication> publish(std::int64_t step, const StateView&, const Digest& state_digest) override {
    do {
      FD_TRY_VOID(room());
    } while (!std::ranges::all_of(*live_, [](const StateGroup& group) { return bool(group.value); }));
    const StateView now = *live_;
    return AsyncPublisher::publish(step, now, state_digest);
  }

 private:
  Status room() {
    FD_TRY(const std::int64_t bytes, context().parts.files.free_space());
    if (bytes > 0) return {};
    return Error{.code = Code::no_space, .message = "the disk is full"};
  }

  const StateView* live_ = nullptr;
};

}  // namespace

std::unique_ptr<AsyncPublisher> make_async_live_state_publisher() { return std::make_unique<LiveState>(); }

}  // namespace firedrill
